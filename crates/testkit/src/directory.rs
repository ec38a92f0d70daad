//! A directory that lives as long as a test.

use std::path::PathBuf;

/// A directory of this test's own, removed when it ends.
#[derive(Debug)]
pub struct Directory(pub PathBuf);

impl Directory {
    /// An empty one; `test` is a name that no other test of the program has.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dunlin-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file into it.
    ///
    /// # Panics
    /// When that fails.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A failed test may have left it in any state; the asserts came before.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
