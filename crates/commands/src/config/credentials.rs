//! User and password in files of their own, as Kubernetes mounts a Secret: read at start, and no part of the
//! configuration file, which anybody may see who may see ConfigMaps.

use std::path::{Path, PathBuf};

use super::{Config, MySqlConfig};

/// A file that a configuration names and that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("mysql.{key}: cannot read {path}", path = path.display())]
pub struct CredentialError {
    key: &'static str,
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

impl Config {
    /// Fills in what `mysql.userFile` and `mysql.passwordFile` hold. The end of a last line is no part of it.
    ///
    /// # Errors
    /// The first file that cannot be read, or is no text.
    pub fn read_credentials(&mut self) -> Result<(), CredentialError> {
        let MySqlConfig {
            fields,
            user_file,
            password_file,
            ..
        } = &mut self.mysql;
        if let Some(path) = user_file {
            fields.user = read("userFile", path)?;
        }
        if let Some(path) = password_file {
            fields.password = read("passwordFile", path)?;
        }
        Ok(())
    }
}

fn read(key: &'static str, path: &Path) -> Result<String, CredentialError> {
    let text = std::fs::read_to_string(path).map_err(|source| CredentialError {
        key,
        path: path.to_owned(),
        source,
    })?;
    Ok(without_end_of_line(&text).to_owned())
}

fn without_end_of_line(text: &str) -> &str {
    let line = text.strip_suffix('\n').unwrap_or(text);
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_last_line_is_no_part_of_a_credential() {
        for (text, credential) in [("kindex\n", "kindex"), (" p a\n\nss\r\n", " p a\n\nss"), ("", "")] {
            assert_eq!(without_end_of_line(text), credential);
        }
    }

    #[test]
    fn a_file_that_is_absent_is_named_with_its_key() {
        let mysql = MySqlConfig {
            password_file: Some("/nowhere/password".into()),
            ..MySqlConfig::default()
        };
        let mut config = Config {
            mysql,
            ..Config::default()
        };
        let error = config.read_credentials().expect_err("absent").to_string();
        assert_eq!(error, "mysql.passwordFile: cannot read /nowhere/password");
    }
}
