//! The web server that gets notices, on the command line: where it is and how it is asked, with errors for people.

use std::path::PathBuf;

use clap::Args;
use kindex_commands::error::{CommandError, CommandResult};
use kindex_deletion::web::server::{Endpoint, Server, Unusable};

/// Which web server gets notices.
#[derive(Clone, Debug, Args)]
pub(super) struct NotifyArgs {
    /// A web server that gets what events say of objects that wait, as JSON by POST to this http:// or https:// URL.
    #[arg(long, env = "KINDEX_NOTIFY", value_name = "URL", hide_env_values = true)]
    notify: Option<String>,

    /// The file with the bearer token for that web server, over https alone; read again for each notice.
    #[arg(long, env = "KINDEX_NOTIFY_TOKEN_FILE", value_name = "FILE", requires = "notify")]
    notify_token_file: Option<PathBuf>,

    /// Certificates (PEM) to trust at that web server instead of those that the machine trusts.
    #[arg(long, env = "KINDEX_NOTIFY_CA_FILE", value_name = "FILE", requires = "notify")]
    notify_ca_file: Option<PathBuf>,
}

impl NotifyArgs {
    /// Whether a server is named.
    pub(super) fn is_given(&self) -> bool {
        self.notify.is_some()
    }

    /// # Errors
    /// An address to which nothing can be posted.
    pub(super) fn check(&self) -> CommandResult {
        match self.place() {
            Some(place) => place.check().map(drop).map_err(|error| unusable(&error)),
            None => Ok(()),
        }
    }

    /// The server, where one is named. One that is away is no error.
    ///
    /// # Errors
    /// An address to which nothing can be posted, and files that cannot be used.
    pub(super) async fn server(&self) -> CommandResult<Option<Server>> {
        let Some(place) = self.place() else {
            return Ok(None);
        };
        let server = Server::open(&place).await;
        server.map(Some).map_err(|error| unusable(&error))
    }

    fn place(&self) -> Option<Endpoint> {
        Some(Endpoint {
            url: self.notify.clone()?,
            token_file: self.notify_token_file.clone(),
            ca_file: self.notify_ca_file.clone(),
        })
    }
}

/// What a person is told whose server cannot be used. The URL may be a secret.
fn unusable(error: &Unusable) -> CommandError {
    let said = CommandError::usage(format_args!("--notify: {error}"));
    match error {
        Unusable::Url => said.hint("write it as https://HOST/PATH"),
        Unusable::Password => said.hint("put a token into a file, and name it with --notify-token-file"),
        Unusable::Plain => said.hint("name an https:// URL, or leave out --notify-token-file and --notify-ca-file"),
        Unusable::Token { .. } => said.hint("--notify-token-file names a file with nothing but the token"),
        Unusable::Certificates(_) => said.hint("--notify-ca-file names a file with certificates (PEM)"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        notify: NotifyArgs,
    }

    fn refused(words: &[&str]) -> Option<String> {
        let line = Line::parse_from(["kindex"].iter().chain(words));
        line.notify.check().err().map(|error| error.to_string())
    }

    #[test]
    fn an_address_that_cannot_be_posted_to_is_refused_with_what_to_do() {
        assert_eq!(refused(&[]), None);
        assert_eq!(refused(&["--notify", "http://127.0.0.1:8080/hook"]), None);
        let https = ["--notify", "https://hooks", "--notify-token-file", "token"];
        assert_eq!(refused(&https), None);
        for (words, said) in [
            (&["--notify", "hooks/secret"][..], "write it as https://HOST/PATH"),
            (&["--notify", "https://user:secret@hooks"], "--notify-token-file"),
            (
                &["--notify", "http://hooks/secret", "--notify-token-file", "token"],
                "name an https:// URL",
            ),
        ] {
            let error = refused(words).expect("refused");
            assert!(error.contains("--notify: ") && error.contains(said), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[tokio::test]
    async fn files_are_read_before_anything_begins() {
        let words = [
            "kindex",
            "--notify",
            "https://hooks",
            "--notify-token-file",
            "/nonexistent",
        ];
        let opened = Line::parse_from(words).notify.server().await;
        let error = opened.err().expect("refused").to_string();
        assert!(error.contains("the token in /nonexistent"), "{error}");
    }

    #[test]
    fn files_go_with_an_address() {
        let line = Line::try_parse_from(["kindex", "--notify-token-file", "token"]);
        assert!(line.is_err_and(|error| error.to_string().contains("--notify <URL>")));
    }
}
