//! Installs the programs that the tests use, where that is possible, and names them where not.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Result;
use crate::run::run;

/// A program that the tests use: how to see that it is there, and Debian's package of it.
struct Need {
    probe: &'static [&'static str],
    package: &'static str,
}

const HEADERS: &str = "import os, sysconfig; \
                       os.stat(sysconfig.get_path('include') + '/Python.h')";

/// Counts instructions; only `cargo xtask instructions` needs it.
const VALGRIND: Need = Need { probe: &["valgrind", "--version"], package: "valgrind" };

/// Packs the Debian package; cargo-deb asks it for the libraries of the binary.
const PACKAGE_USES: [Need; 1] =
    [Need { probe: &["dpkg-shlibdeps", "--version"], package: "dpkg-dev" }];

/// Tests the package.
const PACKAGE_TEST_USES: [Need; 4] = [
    Need { probe: &["mmdebstrap", "--version"], package: "mmdebstrap" },
    Need { probe: &["systemd-analyze", "--version"], package: "systemd" },
    Need { probe: &["/usr/bin/python3", "-c", "import seccomp"], package: "python3-seccomp" },
    Need { probe: &["setpriv", "--version"], package: "util-linux" },
];

/// Signs a release.
const RELEASE_USES: [Need; 1] = [Need { probe: &["minisign", "-v"], package: "minisign" }];

const NEEDS: [Need; 18] = [
    Need { probe: &["beanstalkd", "-v"], package: "beanstalkd" },
    Need { probe: &["redis-server", "--version"], package: "redis-server" },
    Need { probe: &["redis-cli", "--version"], package: "redis-tools" },
    Need { probe: &["curl", "--version"], package: "curl" },
    Need { probe: &["openssl", "version"], package: "openssl" },
    Need { probe: &["python3", "-c", "import ensurepip, venv"], package: "python3-venv" },
    Need { probe: &["go", "version"], package: "golang-go" },
    Need { probe: &["node", "--version"], package: "nodejs" },
    Need { probe: &["npm", "--version"], package: "npm" },
    Need { probe: &["mvn", "--version"], package: "maven" },
    Need { probe: &["javac", "--version"], package: "default-jdk-headless" },
    // A client for Python comes as C, and speaks TLS only if it finds OpenSSL by pkg-config.
    Need { probe: &["python3", "-c", HEADERS], package: "python3-dev" },
    Need { probe: &["pkg-config", "--version"], package: "pkg-config" },
    Need { probe: &["pkg-config", "--exists", "openssl"], package: "libssl-dev" },
    Need { probe: &["sh", "-c", "PATH=$PATH:/usr/sbin nginx -v"], package: "nginx" },
    Need { probe: &["sh", "-c", "PATH=$PATH:/usr/sbin haproxy -v"], package: "haproxy" },
    Need { probe: &["chromium", "--version"], package: "chromium" },
    Need { probe: &["sh", "-c", "ls /usr/lib/*/faketime/libfaketimeMT.so.1"], package: "faketime" },
];

/// Packages that README and the pages of `docs/start` tell to install.
const PAGES_USE: [&str; 6] =
    ["curl", "python3-venv", "nodejs", "npm", "maven", "default-jdk-headless"];

/// Installs the missing programs.
///
/// # Errors
/// When something is missing and this user or system cannot install it: the error names the
/// packages.
pub(crate) fn install(log: &Path) -> Result<()> {
    install_all(&NEEDS, log)
}

/// Installs the missing programs that README and the pages of `docs/start` use.
///
/// # Errors
/// As [`install`].
pub(crate) fn install_for_pages(log: &Path) -> Result<()> {
    let needs = NEEDS.into_iter().filter(|need| PAGES_USE.contains(&need.package));
    install_all(&needs.collect::<Vec<_>>(), log)
}

/// Installs the missing programs that sign a release.
///
/// # Errors
/// As [`install`].
pub(crate) fn install_for_release(log: &Path) -> Result<()> {
    install_all(&RELEASE_USES, log)
}

/// Installs the missing programs that pack the Debian package.
///
/// # Errors
/// As [`install`].
pub(crate) fn install_for_package(log: &Path) -> Result<()> {
    install_all(&PACKAGE_USES, log)
}

/// Installs the missing programs that test the Debian package.
///
/// # Errors
/// As [`install`].
pub(crate) fn install_for_package_test(log: &Path) -> Result<()> {
    install_all(&PACKAGE_TEST_USES, log)
}

/// Installs valgrind if it is missing.
///
/// # Errors
/// As [`install`].
pub(crate) fn install_valgrind(log: &Path) -> Result<()> {
    install_all(&[VALGRIND], log)
}

/// Keeps the package manager from starting installed services, as in containers. Without it a
/// service would begin to serve.
const POLICY: &str = "/usr/sbin/policy-rc.d";

const RABBITMQ: Need = Need {
    probe: &["test", "-x", "/usr/lib/rabbitmq/bin/rabbitmq-server"],
    package: "rabbitmq-server",
};

const POSTGRESQL: Need = Need {
    probe: &["sh", "-c", "test -x /usr/lib/postgresql/*/bin/initdb"],
    package: "postgresql",
};

/// Installs RabbitMQ if it is missing and would not be started by that; only a benchmark needs it.
///
/// # Errors
/// As [`install`].
pub(crate) fn install_rabbitmq(log: &Path) -> Result<()> {
    install_at_rest(RABBITMQ, log)
}

/// The same for PostgreSQL.
///
/// # Errors
/// As [`install`].
pub(crate) fn install_postgresql(log: &Path) -> Result<()> {
    install_at_rest(POSTGRESQL, log)
}

fn install_at_rest(need: Need, log: &Path) -> Result<()> {
    if !succeeds(need.probe) && !Path::new(POLICY).exists() {
        let package = need.package;
        return Err(format!("please install {package}, and stop the service that begins").into());
    }
    install_all(&[need], log)
}

fn install_all(needs: &[Need], log: &Path) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    if !is_root() || !succeeds(&["apt-get", "--version"]) {
        return Err(format!("please install: apt-get install {packages}").into());
    }
    println!("installing {packages}");
    apt(&["update"], log)?;
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(&missing);
    apt(&install, log)?;
    match self::missing(needs) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("still missing after the installation: {}", left.join(" ")).into()),
    }
}

fn missing(needs: &[Need]) -> Vec<&'static str> {
    needs.iter().filter(|need| !succeeds(need.probe)).map(|need| need.package).collect()
}

fn apt(arguments: &[&str], log: &Path) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    let outcome = run(&mut command, log, Duration::from_secs(1200))?;
    if outcome.ended_well {
        return Ok(());
    }
    Err(format!("apt-get {} failed\n{}", arguments.join(" "), outcome.tail()).into())
}

fn succeeds(command: &[&str]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    let quiet = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
