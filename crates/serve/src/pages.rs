//! How many objects are read at once where nobody knows how large they are.

/// So many are read first.
const FIRST: u32 = 4;
/// And at most.
const MOST: u32 = 500;
/// What a page is to hold.
const PAGE_BYTES: usize = 256 * 1024;
/// How much larger the next page may be: what comes may be larger than what came.
const GROWTH: u32 = 16;

/// The size of the next page, from those before.
#[derive(Clone, Copy, Debug)]
pub struct PageSize(u32);

impl Default for PageSize {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl PageSize {
    /// Objects of the next page.
    pub fn objects(self) -> u32 {
        self.0
    }

    /// A page had so many objects, of so many bytes together.
    pub fn read(&mut self, objects: usize, bytes: usize) {
        if objects == 0 {
            return;
        }
        let wanted = PAGE_BYTES / (bytes / objects).max(1);
        let wanted = u32::try_from(wanted).unwrap_or(MOST);
        self.0 = wanted.clamp(1, MOST).min(self.0 * GROWTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_about_the_same_number_of_bytes() {
        let mut size = PageSize::default();
        let mut read = |object_bytes: usize| {
            let objects = size.objects() as usize;
            size.read(objects, objects * object_bytes);
            size.objects()
        };
        assert_eq!([2048, 2048, 1].map(&mut read), [64, 128, 500]);
        assert_eq!([1_400_000, 1_400_000].map(&mut read), [1, 1]);
        assert_eq!(read(2048), 16);
    }
}
