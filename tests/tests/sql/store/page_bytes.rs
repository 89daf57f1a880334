//! Pages of large objects: they end at their bytes before they end at their limit, and none is empty or the last by
//! mistake.

use kindex_model::kind::ColumnType;
use kindex_model::value::Value;
use kindex_query::{Select, Stored};
use kindex_store::{ListAt, RowWrite};
use serde_json::json;

use super::backend::Backend;
use super::widget::{KEEPSAKE, WIDGET, at, widget};

scenarios!(
    a_page_ends_at_its_bytes_and_the_next_one_goes_on,
    a_page_of_columns_ends_at_its_bytes_too,
    a_page_of_the_past_ends_at_its_bytes_too,
);

const PAGE_BYTES: usize = 4_000;
/// Texts of objects: some share a page, some are larger than one, also the first and the last.
const TEXTS: [usize; 12] = [5_000, 10, 10, 10, 3_000, 3_000, 9_000, 9_000, 10, 2_000, 10, 5_000];

fn large() -> Vec<RowWrite> {
    let row = |(at, bytes): (usize, &usize)| {
        let uid = format!("u{at:02}");
        let note = "x".repeat(*bytes);
        widget(&uid, &uid, 1 + at as u64).spec(json!({ "note": note })).live()
    };
    TEXTS.iter().enumerate().map(row).collect()
}

fn all_of() -> Select {
    let mut select = Select::all(&WIDGET);
    select.order_by("name").expect("a column");
    select.allow_scan();
    select.limit(100);
    select
}

/// No page is larger than it may be, but for one object; and none could have had the first object of the next one.
fn check(pages: &[Vec<Stored>]) {
    let length = |stored: &Stored| stored.object.text().len();
    let bytes = |page: &[Stored]| page.iter().map(length).sum::<usize>();
    for page in pages {
        assert!(page.len() == 1 || bytes(page) <= PAGE_BYTES, "{} bytes", bytes(page));
    }
    for both in pages.windows(2) {
        assert!(
            bytes(&both[0]) + length(&both[1][0]) > PAGE_BYTES,
            "it had room for more"
        );
    }
    let found = pages.iter().flatten().map(|stored| stored.object.metadata.name.clone());
    let all: Vec<String> = (0..TEXTS.len()).map(|at| format!("u{at:02}")).collect();
    assert_eq!(found.collect::<Vec<_>>(), all);
    assert!(pages.len() > 5, "{} pages", pages.len());
}

async fn a_page_ends_at_its_bytes_and_the_next_one_goes_on(backend: Backend) {
    let backend = backend.with_page_bytes(PAGE_BYTES).await;
    backend.write_all(&large(), at(0)).await;
    let (mut pages, mut token) = (Vec::new(), None::<String>);
    loop {
        let page = backend.store.select(&all_of(), token.as_deref()).await.expect("a page");
        pages.push(page.items);
        token = page.continue_token;
        if token.is_none() {
            break;
        }
    }
    check(&pages);
}

async fn a_page_of_columns_ends_at_its_bytes_too(backend: Backend) {
    let backend = backend.with_page_bytes(10).await;
    let names = ["aaaa", "bbbb", "cccccccccccccccc", "dddddddd", "ee"];
    let rows: Vec<RowWrite> = (1..)
        .zip(names)
        .map(|(at, name)| widget(name, name, at).live())
        .collect();
    backend.write_all(&rows, at(0)).await;
    let columns = [
        ("name", ColumnType::Text { chars: 255 }),
        ("res_version", ColumnType::Int64),
    ];
    let (mut pages, mut token) = (Vec::new(), None::<String>);
    loop {
        let page = backend.store.project(&all_of(), &columns, token.as_deref()).await;
        let page = page.expect("a page");
        let names = page.items.iter().map(|cells| match &cells[0] {
            Value::Text(name) => name.clone(),
            other => panic!("{other:?} is not a name"),
        });
        pages.push(names.collect::<Vec<_>>());
        token = page.continue_token;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(
        pages,
        [vec!["aaaa", "bbbb"], vec!["cccccccccccccccc"], vec!["dddddddd", "ee"]]
    );
}

async fn a_page_of_the_past_ends_at_its_bytes_too(backend: Backend) {
    let backend = backend.with_page_bytes(PAGE_BYTES).await;
    let written = backend.store.write(&KEEPSAKE, &large(), at(0)).await;
    written.expect("written");
    let wanted = ListAt {
        time: at(5),
        namespace: None,
        limit: 100,
    };
    let (mut pages, mut token) = (Vec::new(), None::<String>);
    loop {
        let page = backend.store.list_at(&KEEPSAKE, &wanted, token.as_deref()).await;
        let page = page.expect("a page");
        pages.push(page.items);
        token = page.continue_token;
        if token.is_none() {
            break;
        }
    }
    check(&pages);
}
