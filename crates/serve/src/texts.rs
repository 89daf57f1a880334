//! Texts on their way to watchers, counted for as long as somebody holds them, and held once where several watchers are
//! told the same.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::Notify;

/// What is held.
#[derive(Default)]
pub(crate) struct Texts {
    bytes: AtomicUsize,
    /// By the hash of what they say; those that are gone are removed as they go.
    known: Mutex<HashMap<u64, Weak<Text>>>,
    hasher: RandomState,
    /// Said to when something is held no more.
    pub(crate) freed: Notify,
}

/// One text, whoever holds it.
struct Text {
    text: Bytes,
    /// Under which it is known, where it is.
    hash: Option<u64>,
    texts: Arc<Texts>,
}

impl Drop for Text {
    fn drop(&mut self) {
        self.texts.bytes.fetch_sub(self.text.len(), Ordering::Relaxed);
        if let Some(hash) = self.hash {
            let mut known = self.texts.known();
            if known.get(&hash).is_some_and(|text| text.strong_count() == 0) {
                known.remove(&hash);
            }
        }
        self.texts.freed.notify_waiters();
    }
}

struct TextOwner(Arc<Text>);

impl AsRef<[u8]> for TextOwner {
    fn as_ref(&self) -> &[u8] {
        &self.0.text
    }
}

impl Texts {
    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// This text, counted.
    pub(crate) fn counted(self: &Arc<Self>, text: Bytes) -> Bytes {
        if text.is_empty() {
            return text;
        }
        Bytes::from_owner(TextOwner(self.hold(text, None)))
    }

    /// This text, counted; the very one that others hold, where somebody does.
    pub(crate) fn shared(self: &Arc<Self>, text: Bytes) -> Bytes {
        if text.is_empty() {
            return text;
        }
        let hash = self.hasher.hash_one(&text);
        let held = {
            let mut known = self.known();
            let same = known.get(&hash).and_then(Weak::upgrade);
            match same {
                Some(same) if same.text == text => Ok(same),
                // Another text of this hash keeps its place, and goes outside of the lock.
                Some(other) => Err((other, self.hold(text, None))),
                None => {
                    let new = self.hold(text, Some(hash));
                    known.insert(hash, Arc::downgrade(&new));
                    Ok(new)
                }
            }
        };
        let held = held.unwrap_or_else(|(_, held)| held);
        Bytes::from_owner(TextOwner(held))
    }

    fn hold(self: &Arc<Self>, text: Bytes, hash: Option<u64>) -> Arc<Text> {
        self.bytes.fetch_add(text.len(), Ordering::Relaxed);
        Arc::new(Text {
            text,
            hash,
            texts: self.clone(),
        })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Weak<Text>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_counts_once_and_until_nobody_holds_it() {
        let texts = Arc::new(Texts::default());
        let text = || Bytes::from(vec![b'x'; 1000]);
        let held: Vec<Bytes> = (0..50).map(|_| texts.shared(text())).collect();
        assert_eq!(texts.bytes(), 1000);
        let other = texts.counted(text());
        assert_eq!(texts.bytes(), 2000);
        let slice = held[0].slice(1..2);
        drop((held, other));
        assert_eq!(texts.bytes(), 1000, "a part of it keeps it");
        drop(slice);
        assert_eq!(texts.bytes(), 0);
        assert!(texts.known().is_empty());
    }
}
