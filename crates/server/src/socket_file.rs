//! Sockets in the file system. No client can connect before the permissions hold; the server
//! replaces a socket only if it has no listener, and removes its own at the end.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use crate::address::UnixSocket;

/// The file of a socket that is listened on; dropping it removes the file, unless another socket
/// has taken its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: Identity,
}

/// Tells a file from one that took its place: also if the system gave it the number of the
/// first, it was made at another time.
type Identity = (u64, u64, i64, i64);

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
}

impl SocketFile {
    /// Listens on a socket of this file.
    ///
    /// # Errors
    /// Another process listens, the path is too long, or the system refuses.
    pub(crate) fn listen(wanted: &UnixSocket, backlog: i32) -> io::Result<(OwnedFd, Self)> {
        let address = address(&wanted.path)?;
        let _alone = lock_directory(&wanted.path);
        let socket = make()?;
        match bind(&socket, &address) {
            Err(Errno::ADDRINUSE) => {
                remove_stale(&wanted.path, &address)?;
                bind(&socket, &address)?;
            }
            bound => bound?,
        }
        let file = Self::new(&wanted.path)?;
        // In this order: no client can connect before it listens.
        if let Some(group) = wanted.group {
            chown(&wanted.path, None, Some(group))?;
        }
        fs::set_permissions(&wanted.path, Permissions::from_mode(wanted.mode))?;
        listen(&socket, backlog)?;
        Ok((socket, file))
    }

    fn new(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), identity: identity(&metadata) })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The next start replaces a socket that cannot be removed.
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|metadata| identity(&metadata) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn make() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn address(path: &Path) -> io::Result<SocketAddrUnix> {
    SocketAddrUnix::new(path).map_err(|errno| match errno {
        Errno::NAMETOOLONG => io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "its path has {} bytes, and the system takes {PATH_BYTES_MAX}: choose another",
                path.as_os_str().len()
            ),
        ),
        errno => errno.into(),
    })
}

/// Removes a socket without a listener, as a killed server leaves it.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file of that name that is no socket, remove it or choose another path",
        ));
    }
    match connect(make()?, address) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path),
        Err(Errno::NOENT) => Ok(()),
        // Also if so many connections wait that the listener takes none now.
        Ok(()) | Err(_) => Err(Errno::ADDRINUSE.into()),
    }
}

/// Keeps out another server that starts: the socket that one of them has just made, and does not
/// listen to yet, would look stale to the other. If the directory cannot be locked in a second, it
/// is left to chance.
fn lock_directory(path: &Path) -> Option<File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = File::open(parent.unwrap_or(Path::new("."))).ok()?;
    for _ in 0..LOCK_TRIES {
        if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Some(directory);
        }
        sleep(LOCK_PAUSE);
    }
    None
}

/// Bytes of `sun_path` but for its end.
const PATH_BYTES_MAX: usize = 107;

const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    struct Directory(PathBuf);

    impl Directory {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("dunlin-{}-{test}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn socket(&self, name: &str) -> UnixSocket {
            UnixSocket { path: self.0.join(name), mode: 0o640, group: None }
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn listen(wanted: &UnixSocket) -> io::Result<(OwnedFd, SocketFile)> {
        SocketFile::listen(wanted, 5)
    }

    #[test]
    fn socket_files_have_their_mode() {
        let directory = Directory::new("mode");
        let wanted = directory.socket("s");
        let (_socket, file) = listen(&wanted).unwrap();
        assert_eq!(fs::metadata(&wanted.path).unwrap().mode() & 0o777, 0o640);
        UnixStream::connect(&wanted.path).unwrap();
        drop(file);
        assert!(!wanted.path.exists(), "removed at the end");
    }

    #[test]
    fn stale_sockets_are_replaced() {
        let directory = Directory::new("stale");
        let wanted = directory.socket("s");
        let (socket, file) = listen(&wanted).unwrap();
        let in_use = listen(&wanted).unwrap_err();
        assert_eq!(in_use.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        let (_second, _file) = listen(&wanted).unwrap();
        drop(file);
        assert!(wanted.path.exists(), "the first leaves the file of the second");
        UnixStream::connect(&wanted.path).unwrap();
    }

    #[test]
    fn path_of_other_file_is_refused() {
        let directory = Directory::new("file");
        let wanted = directory.socket("s");
        fs::write(&wanted.path, "kept").unwrap();
        assert!(listen(&wanted).unwrap_err().to_string().contains("no socket"));
        assert_eq!(fs::read(&wanted.path).unwrap(), b"kept");
    }

    #[test]
    fn long_paths_are_refused() {
        let directory = Directory::new("long");
        let error = listen(&directory.socket(&"x".repeat(200))).unwrap_err().to_string();
        assert!(error.contains("the system takes 107"), "{error}");
        let missing = listen(&directory.socket("none/s")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
