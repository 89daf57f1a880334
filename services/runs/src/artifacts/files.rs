//! Contents on disk: one file for each content that was received for an upload, called by the id of the upload and the
//! MD5 of the content. A file has its name only once it is whole and durable; it is never changed afterwards.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, pin_mut};
use md5::{Digest as _, Md5};
use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt as _;

use super::upload::{Checksum, checksum, hex, of_hash};
use super::verdict::Content;

/// A sender that says nothing for so long has gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The end of the name of a file that is not whole.
const PART: &str = "part";

/// Why a content was not received.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReceiveError {
    /// There is more or less than was announced.
    #[error("the file has {received} bytes, {announced} were announced")]
    Size { received: u64, announced: u64 },
    /// It is another file than was announced.
    #[error("the file has the MD5 {0}, another one was announced")]
    Checksum(String),
    /// The sender has gone.
    #[error("the file broke off after {0} bytes")]
    BrokenOff(u64),
    /// The disk.
    #[error("the file cannot be stored: {0}")]
    Disk(#[from] io::Error),
}

/// A folder of contents.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// A folder, which is made if it is not there.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(folder: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(Self::at(folder))
    }

    /// A folder that is there or not, to read from.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Receives a content for an upload, and returns once it is durable. `part` tells senders of one upload apart.
    pub(super) async fn receive<E>(
        &self,
        upload_id: &str,
        part: u64,
        announced: (u64, Option<Checksum>),
        body: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Content, ReceiveError> {
        let folder = self.folder_of(upload_id);
        fs::create_dir_all(&folder).await?;
        let path = folder.join(format!("{upload_id}.{part:016x}.{PART}"));
        let received = match write(&path, announced.0, body).await {
            Ok(received) => check(received, announced),
            Err(error) => Err(error),
        };
        match received {
            Ok(content) => {
                fs::rename(&path, folder.join(name(upload_id, &content.checksum))).await?;
                File::open(&folder).await?.sync_all().await?;
                Ok(content)
            }
            Err(error) => {
                remove(&path).await?;
                Err(error)
            }
        }
    }

    /// The contents that were received for an upload.
    pub(super) async fn received(&self, upload_id: &str) -> io::Result<Vec<Content>> {
        let mut contents = Vec::new();
        for path in self.of(upload_id).await? {
            let named = path.extension().and_then(|end| checksum("", end.to_str()?).ok());
            if let Some(checksum) = named {
                let bytes = fs::metadata(&path).await?.len();
                contents.push(Content { bytes, checksum });
            }
        }
        Ok(contents)
    }

    /// Opens a content.
    pub(super) async fn read(&self, upload_id: &str, checksum: &Checksum) -> io::Result<File> {
        File::open(self.folder_of(upload_id).join(name(upload_id, checksum))).await
    }

    /// Deletes what was received for an upload, except for one content.
    pub(super) async fn remove(&self, upload_id: &str, except: Option<&Checksum>) -> io::Result<()> {
        let kept = except.map(|checksum| name(upload_id, checksum));
        for path in self.of(upload_id).await? {
            let is_kept = path.file_name().and_then(|name| name.to_str()) == kept.as_deref();
            if !is_kept || kept.is_none() {
                remove(&path).await?;
            }
        }
        Ok(())
    }

    /// Ids end in random digits, so that no folder is large.
    fn folder_of(&self, upload_id: &str) -> PathBuf {
        let end = upload_id.len().saturating_sub(2);
        self.folder.join(upload_id.get(end..).unwrap_or("00"))
    }

    async fn of(&self, upload_id: &str) -> io::Result<Vec<PathBuf>> {
        let mut entries = match fs::read_dir(self.folder_of(upload_id)).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut paths = Vec::new();
        while let Some(entry) = entries.next_entry().await? {
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(upload_id));
            if rest.is_some_and(|rest| rest.starts_with('.')) {
                paths.push(entry.path());
            }
        }
        Ok(paths)
    }
}

fn name(upload_id: &str, checksum: &Checksum) -> String {
    format!("{upload_id}.{}", hex(checksum))
}

async fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes what comes, up to one byte more than was announced, and makes it durable.
async fn write<E>(
    path: &Path,
    announced: u64,
    body: impl Stream<Item = Result<Bytes, E>>,
) -> Result<Content, ReceiveError> {
    let mut file = File::create_new(path).await?;
    let mut hash = Md5::new();
    let mut bytes = 0;
    pin_mut!(body);
    loop {
        let data = match tokio::time::timeout(SILENCE_MAX, body.next()).await {
            Ok(None) => break,
            Ok(Some(Ok(data))) => data,
            Ok(Some(Err(_))) | Err(_) => return Err(ReceiveError::BrokenOff(bytes)),
        };
        bytes += data.len() as u64;
        if bytes > announced {
            return Err(ReceiveError::Size {
                received: bytes,
                announced,
            });
        }
        hash.update(&data);
        file.write_all(&data).await?;
    }
    file.flush().await?;
    file.sync_all().await?;
    let checksum = of_hash(hash.finalize());
    Ok(Content { bytes, checksum })
}

fn check(received: Content, announced: (u64, Option<Checksum>)) -> Result<Content, ReceiveError> {
    if received.bytes != announced.0 {
        return Err(ReceiveError::Size {
            received: received.bytes,
            announced: announced.0,
        });
    }
    if announced.1.is_some_and(|checksum| checksum != received.checksum) {
        return Err(ReceiveError::Checksum(hex(&received.checksum)));
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use tempfile::TempDir;

    use super::*;

    const ID: &str = "0190b3a0-1111-7222-8333-444455556666";
    /// Of "hello".
    const MD5: &str = "5d41402abc4b2a76b9719d911017c592";

    fn body(parts: &[&'static str]) -> impl Stream<Item = Result<Bytes, ()>> + use<> {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| Ok(Bytes::from_static(part.as_bytes())))
            .collect();
        stream::iter(parts)
    }

    fn folder() -> (TempDir, Files) {
        let folder = TempDir::new().expect("a folder");
        let files = Files::open(&folder.path().join("artifacts")).expect("a folder");
        (folder, files)
    }

    fn count(folder: &TempDir) -> usize {
        let shard = folder.path().join("artifacts").join("66");
        shard.read_dir().map_or(0, Iterator::count)
    }

    #[tokio::test]
    async fn what_was_received_is_read_back() {
        let (folder, files) = folder();
        let known = checksum("", MD5).expect("a checksum");
        let received = files
            .receive(ID, 1, (5, Some(known)), body(&["he", "llo"]))
            .await
            .expect("a content");
        assert_eq!((received.bytes, hex(&received.checksum)), (5, MD5.to_owned()));
        assert_eq!(files.received(ID).await.expect("a list"), [received]);
        assert_eq!(
            files
                .read(ID, &known)
                .await
                .expect("a file")
                .metadata()
                .await
                .expect("a length")
                .len(),
            5
        );
        assert_eq!(
            files
                .received("0190b3a0-1111-7222-8333-444455550066")
                .await
                .expect("a list"),
            []
        );
        files.remove(ID, Some(&known)).await.expect("kept");
        assert_eq!(count(&folder), 1);
        files.remove(ID, None).await.expect("removed");
        assert_eq!(count(&folder), 0);
    }

    #[tokio::test]
    async fn nothing_stays_of_a_file_that_is_not_what_was_announced() {
        let (folder, files) = folder();
        let other = Some([1; 16]);
        for (announced, parts) in [
            ((4, None), ["he", "llo"]),
            ((6, None), ["he", "llo"]),
            ((5, other), ["he", "llo"]),
        ] {
            assert!(
                files.receive(ID, 1, announced, body(&parts)).await.is_err(),
                "{announced:?}"
            );
            assert_eq!(count(&folder), 0, "{announced:?}");
        }
        let broken = stream::iter([Ok(Bytes::from_static(b"he")), Err(())]);
        let error = files.receive(ID, 1, (5, None), broken).await.expect_err("broken off");
        assert!(matches!(error, ReceiveError::BrokenOff(2)), "{error}");
        assert_eq!(count(&folder), 0);
    }

    #[tokio::test]
    async fn two_senders_of_one_upload_do_not_mix() {
        let (_folder, files) = folder();
        let one = files.receive(ID, 1, (5, None), body(&["hello"]));
        let two = files.receive(ID, 2, (5, None), body(&["w", "orld"]));
        let (one, two) = tokio::join!(one, two);
        let mut received = files.received(ID).await.expect("a list");
        let mut expected = vec![one.expect("a content"), two.expect("a content")];
        received.sort_by_key(|content| content.checksum);
        expected.sort_by_key(|content| content.checksum);
        assert_eq!(received, expected);
    }
}
