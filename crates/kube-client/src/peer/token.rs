//! The token that another service is asked with, as its file holds it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderValue, Request, header};

/// Signs requests with what the file holds then: the token of a service account is renewed.
#[derive(Clone, Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    /// What it held when it was read last: a file may be absent for the moment in which it is replaced.
    last: Arc<Mutex<HeaderValue>>,
}

impl TokenFile {
    /// # Errors
    /// Why the file has no token.
    pub(super) fn open(path: &str) -> Result<Self, String> {
        let path = PathBuf::from(path);
        let last = Arc::new(Mutex::new(read(&path)?));
        Ok(Self { path, last })
    }

    pub(super) fn sign<B>(&self, mut request: Request<B>) -> Request<B> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(value) = read(&self.path) {
            *last = value;
        }
        request.headers_mut().insert(header::AUTHORIZATION, last.clone());
        request
    }
}

/// The header. Editors and `kubectl create token` end the file with a line break, which is no part of the token.
fn read(path: &Path) -> Result<HeaderValue, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(format!(
            "{}: the file is empty. Write the token into it",
            path.display()
        ));
    }
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
        format!(
            "{}: this is not a token: it has line breaks or control characters",
            path.display()
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(file: &TokenFile) -> String {
        let request = file.sign(Request::new(()));
        request.headers()[header::AUTHORIZATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn each_request_has_the_token_that_the_file_held_last_without_its_line_break() {
        let path = std::env::temp_dir().join(format!("kindex-token-{}", std::process::id()));
        std::fs::write(&path, "first\n").unwrap();
        let file = TokenFile::open(path.to_str().unwrap()).unwrap();
        assert_eq!(sent(&file), "Bearer first");
        std::fs::write(&path, "second").unwrap();
        assert_eq!(sent(&file), "Bearer second");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(sent(&file), "Bearer second");
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let path = std::env::temp_dir().join(format!("kindex-no-token-{}", std::process::id()));
        let refused = |text: &str| {
            std::fs::write(&path, text).unwrap();
            TokenFile::open(path.to_str().unwrap()).unwrap_err()
        };
        assert!(refused(" \n").ends_with("the file is empty. Write the token into it"));
        assert!(refused("two\nlines").contains("this is not a token"));
        std::fs::remove_file(&path).unwrap();
        assert!(
            TokenFile::open(path.to_str().unwrap())
                .unwrap_err()
                .contains("No such file")
        );
    }
}
