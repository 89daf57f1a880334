//! The Python SDK's own load program, which times calls of `log` with the server fast, slow and away.

use std::path::Path;
use std::process::{Command, Stdio};

/// A line of it.
#[derive(Debug, PartialEq)]
pub struct LogCall {
    /// `nothing`, or what the server does.
    pub server: String,
    /// In microseconds.
    pub p99_us: f64,
    /// Points that were dropped.
    pub dropped: u64,
}

/// Runs it with so many calls for each case.
///
/// # Errors
/// Where there is no Python, or it fails.
pub fn measure(calls: usize) -> Result<Vec<LogCall>, String> {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/python");
    let output = Command::new("python3")
        .arg(sdk.join("benchmarks/log_latency.py"))
        .args(["--calls", &calls.to_string()])
        .env("PYTHONPATH", sdk.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("python3 does not start: {error}"))?;
    let lines = String::from_utf8_lossy(&output.stdout);
    // It ends with 1 where a mark is missed.
    let measured: Vec<LogCall> = lines.lines().filter_map(line).collect();
    if measured.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(measured)
}

/// `fast 3.1 6.2 14.0 512.0 0 0`: the middle, three percentiles or the like, and counts, which `nothing` has none of.
fn line(line: &str) -> Option<LogCall> {
    let mut words = line.split_whitespace();
    let server = words.next()?.to_owned();
    let mut numbers = words.map(str::parse::<f64>);
    let p99_us = numbers.nth(1)?.ok()?;
    let dropped = numbers.nth(2).and_then(Result::ok).unwrap_or(0.0) as u64;
    Some(LogCall {
        server,
        p99_us,
        dropped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_no_line_and_a_line_has_its_percentile() {
        assert_eq!(
            line("server     p50 us   p99 us p99.9 us    max us  dropped      left"),
            None
        );
        let of = |server: &str, p99_us, dropped| {
            Some(LogCall {
                server: server.to_owned(),
                p99_us,
                dropped,
            })
        };
        assert_eq!(
            line("nothing       0.4      0.9       2.0      99.0"),
            of("nothing", 0.9, 0)
        );
        assert_eq!(
            line("slow       3.0      7.5       20.1      812.0       12      0"),
            of("slow", 7.5, 12)
        );
    }
}
