//! The project's files as text, read once for tidy and metrics.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// One text file of the project.
#[derive(Clone, Debug)]
pub(crate) struct TextFile {
    /// Its path from the project's root, with `/`.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

/// The project: its root and its text files.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    /// The root folder of the project.
    pub(crate) root: PathBuf,
    /// The files that git tracks or would add, in the order of the paths.
    pub(crate) files: Vec<TextFile>,
}

impl Repository {
    /// Reads the files that git tracks or would add.
    pub(crate) fn read() -> Result<Repository> {
        let root = root();
        let list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
        let output = git(&root).args(list).output()?;
        if !output.status.success() {
            return Err("git ls-files failed; the tools need a git checkout".into());
        }
        let mut files: Vec<TextFile> = String::from_utf8(output.stdout)?
            .split_terminator('\0')
            // Leaves out files that are not text, and files that are deleted but still tracked.
            .filter_map(|path| Some((path, fs::read_to_string(root.join(path)).ok()?)))
            .map(|(path, text)| TextFile { path: path.to_owned(), text })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Repository { root, files })
    }

    /// The files under `folder` with names that end with `extension`.
    pub(crate) fn under<'a>(
        &'a self,
        folder: &'a str,
        extension: &'a str,
    ) -> impl Iterator<Item = &'a TextFile> {
        let lies_there = move |path: &str| path.starts_with(folder) && path.ends_with(extension);
        self.files.iter().filter(move |file| lies_there(&file.path))
    }
}

impl TextFile {
    /// The lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// git in the checkout at `root`, regardless of its owner: a container's root reads its user's
/// clone.
pub(crate) fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*"]).current_dir(root);
    git
}

/// The project's root: the folder that holds this crate.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.to_owned(), Path::to_owned)
}
