//! The script that says which failed tests `.ci/tests` runs once more. Knows nothing of why a test fails.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What cargo prints of four binaries: one with two failures whose output looks like a list itself, one that is
/// well, one that aborts, and the examples of a library.
const PRINTED: &str = "\
     Running unittests src/lib.rs (target/debug/deps/first-1)

test a ... FAILED
test b::c ... FAILED

failures:

---- a stdout ----
failures:
    no_test_at_all
the end

failures:
    a
    b::c

test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.13s

error: test failed, to rerun pass `-p first --lib`
     Running tests/well.rs (target/debug/deps/well-2)

test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.13s

     Running tests/aborts.rs (target/debug/deps/aborts-3)
error: test failed, to rerun pass `-p first --test aborts`
   Doc-tests first

failures:
    src/lib.rs - Thing (line 1)

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.09s

error: doctest failed, to rerun pass `-p first --doc`
error: 3 targets failed:
    `-p first --lib`
";

#[test]
fn each_failed_test_is_named_with_its_binary() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/failed-tests");
    let mut awk = Command::new("awk")
        .arg("-f")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("awk starts");
    let mut input = awk.stdin.take().expect("piped");
    input.write_all(PRINTED.as_bytes()).unwrap();
    drop(input);
    let printed = awk.wait_with_output().unwrap().stdout;
    let expected = "-p first --lib\ta\n\
                    -p first --lib\tb::c\n\
                    -p first --test aborts\t\n\
                    -p first --doc\tsrc/lib.rs - Thing (line 1)\n";
    assert_eq!(String::from_utf8_lossy(&printed), expected);
}
