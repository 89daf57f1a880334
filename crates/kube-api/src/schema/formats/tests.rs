//! Texts that are, and are not, of each format.

use super::*;

fn check(format: &str, good: &[&str], bad: &[&str]) {
    let known = Format::of_name(format).unwrap();
    for text in good {
        assert!(known.accepts(text), "{format} refuses {text:?}");
    }
    for text in bad {
        assert!(!known.accepts(text), "{format} accepts {text:?}");
    }
}

#[test]
fn times_dates_and_durations() {
    check(
        "date-time",
        &["2024-02-29T23:59:59Z", "2024-01-01t00:00:00.5+01:00"],
        &["2023-02-29T00:00:00Z", "now", "2024-01-01T24:00:00Z", "2024-01-01"],
    );
    check("date", &["2024-02-29"], &["2023-02-29", "2024-1-1", ""]);
    check(
        "duration",
        &["1h30m", "-1.5s", "0", "2 days", "22 ns", "1w"],
        &["", "1x", "h"],
    );
}

#[test]
fn identifiers() {
    check(
        "uuid",
        &[
            "123e4567-e89b-12d3-a456-426614174000",
            "123E4567E89B12D3A456426614174000",
        ],
        &["123e4567-e89b-12d3-a456-42661417400", "x"],
    );
    check(
        "uuid4",
        &["123e4567-e89b-42d3-a456-426614174000"],
        &[
            "123e4567-e89b-12d3-a456-426614174000",
            "123e4567-e89b-42d3-c456-426614174000",
        ],
    );
    check(
        "isbn",
        &["0321751043", "978-0321751041"],
        &["0321751044", "978-0321751042"],
    );
    check("creditcard", &["4111-1111-1111-1111"], &["4111-1111-1111-1112", ""]);
    check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]);
    check("ssn", &["123-45-6789"], &["123456789"]);
}

#[test]
fn network_names() {
    check("ipv4", &["10.0.0.1", "010.000.0.1"], &["256.0.0.1", "1.2.3", "::1"]);
    check("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "fe80::1%eth0"]);
    check("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0/33", "10.0.0.0"]);
    check("mac", &["00:00:5e:00:53:01", "0000.5e00.5301"], &["00:00:5e"]);
    check(
        "hostname",
        &["a", "example.com", "1.example.com"],
        &["-a", "a..b", "a_b.com", ""],
    );
    check(
        "uri",
        &["http://a/b?c", "/path", "https://a%20b/"],
        &["a b", "relative", "", "http://a%zz"],
    );
    check(
        "email",
        &["a@b.c", "Ann <ann@example.com>"],
        &["a", "@b", "a@", "a b@c"],
    );
}

#[test]
fn encodings_and_colors() {
    check("byte", &["aGVsbG8=", "YWJj"], &["", "aGVsbG8", "a-_b", "===="]);
    check("hexcolor", &["#fff", "ABCDEF"], &["#ffff", "#ggg"]);
    check("rgbcolor", &["rgb(0, 10,255)"], &["rgb(0,0,256)", "rgb(0,0)"]);
}

#[test]
fn integer_formats_are_not_checked() {
    assert_eq!(Format::of_name("int32"), None);
    assert_eq!(Format::of_name("int-or-string"), None);
}
