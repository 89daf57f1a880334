//! Bytes a point, and points a second of one core: `cargo run --release -p kindex-series --example figures`.

use std::hint::black_box;
use std::time::Instant;

use kindex_series::chunk::{Decoder, Encoder};
use kindex_series::{Columns, Effort, Method, Series, batch, buckets, downsample, merge_all};

#[path = "../src/sample.rs"]
mod sample;

use sample::{Random, Shape};

const CHUNK_POINTS: usize = 4_096;

fn main() {
    println!("{:34} {:>9} {:>12}", "", "bytes/pt", "M points/s");
    for effort in [Effort::Live, Effort::Sealed] {
        for shape in Shape::ALL {
            chunks(effort, shape);
        }
    }
    batches();
    fewer_points();
}

fn report(name: &str, bytes: Option<f64>, points: usize, mut work: impl FnMut()) {
    work();
    let start = Instant::now();
    let mut times = 0;
    while start.elapsed().as_millis() < 300 {
        work();
        times += 1;
    }
    let rate = (points * times) as f64 / start.elapsed().as_secs_f64() / 1e6;
    let bytes = bytes.map_or_else(String::new, |bytes| format!("{bytes:.2}"));
    println!("{name:34} {bytes:>9} {rate:>12.1}");
}

fn chunks(effort: Effort, shape: Shape) {
    let series = sample::series(shape, CHUNK_POINTS, 1);
    let mut encoder = Encoder::new(effort);
    let bytes = encoder.encode(&series);
    let each = bytes.len() as f64 / CHUNK_POINTS as f64;
    report(
        &format!("write a chunk, {effort:?} {shape:?}"),
        Some(each),
        CHUNK_POINTS,
        || {
            black_box(encoder.encode(black_box(&series)));
        },
    );
    let mut decoder = Decoder::default();
    report(
        &format!("read a chunk, {effort:?} {shape:?}"),
        None,
        CHUNK_POINTS,
        || {
            black_box(decoder.decode(black_box(&bytes)).is_ok());
        },
    );
}

fn batches() {
    let mut random = Random::new(2);
    let mut columns = Columns::default();
    for index in 0..1_000_u32 {
        let step = i64::from(index / 50);
        let time = 1_790_000_000_000_000_000 + step * 100_003_000;
        columns.push(index % 50, step, time, random.fraction().to_bits());
    }
    let numbers: Vec<u32> = (0..50).collect();
    let body = batch::encode(&numbers, &columns);
    let each = body.len() as f64 / 1_000.0;
    report("write a batch", Some(each), 1_000, || {
        black_box(batch::encode(&numbers, black_box(&columns)));
    });
    report("read a batch", None, 1_000, || {
        black_box(batch::decode(black_box(&body)).is_ok());
    });
    report("split a batch by metric", None, 1_000, || {
        black_box(black_box(&columns).split(50));
    });
    let parts: Vec<Series> = (0..200).map(|seed| sample::series(Shape::Noise, 20, seed)).collect();
    report("merge 200 parts of 20 points", None, 4_000, || {
        black_box(merge_all(black_box(&parts)));
    });
}

fn fewer_points() {
    let series = sample::series(Shape::Noise, 100_000, 3);
    for method in [
        Method::Lttb,
        Method::MinMax,
        Method::Average,
        Method::First,
        Method::Last,
    ] {
        report(&format!("100,000 points to 1,000, {method:?}"), None, 100_000, || {
            black_box(downsample(black_box(&series), method, 1_000));
        });
    }
    report("100,000 points to 1,000 buckets", None, 100_000, || {
        black_box(buckets(black_box(&series), 1_000));
    });
}
