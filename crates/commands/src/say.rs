//! What a command says: on stdout what was asked for, on stderr notes. A reader that has seen enough, such as `head`,
//! ends neither the command nor its work.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use crate::color;
use crate::error::{CommandError, CommandResult};

/// Writes to stdout.
///
/// # Errors
/// It takes no more, as a file on a full disk. A pipe that nobody reads is no error: the rest is dropped.
pub fn print(text: impl fmt::Display) -> CommandResult {
    print_to(&mut io::stdout().lock(), &text.to_string())
}

/// Writes a line to stdout, with the errors of [`print()`].
pub fn line(text: impl fmt::Display) -> CommandResult {
    print(format_args!("{text}\n"))
}

/// Writes a line to stderr, where somebody still reads it: there is no other place to complain.
pub fn note(text: impl fmt::Display) {
    let text = color::painted(&format!("{text}\n"), color::of_stderr());
    let _unread = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a question to stderr; the answer is typed behind it.
pub fn prompt(text: impl fmt::Display) {
    let _unread = io::stderr().lock().write_all(text.to_string().as_bytes());
}

fn print_to(place: &mut impl Write, text: &str) -> CommandResult {
    match place.write_all(text.as_bytes()).and_then(|()| place.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CommandError::failure(format_args!("stdout: {error}"))
                .hint("not all was printed; is there room where it goes?"))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes nothing, and says why.
    struct Closed(ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is_one() {
        print_to(&mut Closed(ErrorKind::BrokenPipe), "rows\n").expect("the reader has seen enough");
        let error = print_to(&mut Closed(ErrorKind::StorageFull), "rows\n").expect_err("rows are missing");
        assert!(error.to_string().starts_with("error: stdout: "), "{error}");
    }
}
