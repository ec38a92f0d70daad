//! Every mode against the original server.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use bench::BenchError;
use bench::jobs::{Mode, Report, run};
use testkit::foreign_server::ForeignServer;

use crate::common::{options, quietly};

#[test]
fn put_leaves_the_jobs() {
    let server = ForeignServer::beanstalkd();
    let report = quietly(&options(server.address, Mode::Put)).unwrap();
    report.verdict().unwrap();
    assert_eq!(names(&report), ["put"]);
    assert_eq!(report.phases[0].jobs, 1_000);
    assert_eq!(report.phases[0].latencies[0].count, 1_000);
    assert_eq!(report.jobs_left, Some(1_000));
}

#[test]
fn put_delete_leaves_nothing() {
    let server = ForeignServer::beanstalkd();
    for (clients, pipeline, body_bytes) in [(1, 1, 0), (10, 5, 100), (3, 64, 65_535)] {
        let mut options = options(server.address, Mode::PutDelete);
        (options.clients, options.pipeline, options.body_bytes) = (clients, pipeline, body_bytes);
        let report = quietly(&options).unwrap();
        report.verdict().unwrap();
        assert_eq!(names(&report), ["put", "reserve+delete"]);
        assert_eq!(report.phases[1].jobs, 1_000);
        let commands: Vec<_> = report.phases[1].latencies.iter().map(|l| l.command).collect();
        assert_eq!(commands, ["reserve", "delete"]);
        assert_eq!(report.jobs_left, Some(0));
    }
}

#[test]
fn release_counts_met_jobs() {
    let server = ForeignServer::beanstalkd();
    let mut options = options(server.address, Mode::Release);
    let report = quietly(&options).unwrap();
    report.verdict().unwrap();
    assert_eq!(names(&report), ["put", "reserve+release", "clear"]);
    assert_eq!(report.phases[1].jobs, 2_000);
    let visited = report.phases[1].visited.unwrap();
    // A released job goes back in front: the workers circle over as many as they hold at once.
    assert!((1..=50).contains(&visited), "{visited}");
    assert_eq!(report.jobs_left, Some(0));

    options.releases = Some(77);
    assert_eq!(quietly(&options).unwrap().phases[1].jobs, 77);
}

#[test]
fn mode_all_runs_three_modes() {
    let server = ForeignServer::beanstalkd();
    let report = quietly(&options(server.address, Mode::All)).unwrap();
    report.verdict().unwrap();
    let phases = ["put", "clear", "put", "reserve+delete", "put", "reserve+release", "clear"];
    assert_eq!(names(&report), phases);
    assert_eq!(report.jobs_left, Some(0));
}

#[test]
fn report_names_server_and_process() {
    let server = ForeignServer::beanstalkd();
    let report = quietly(&options(server.address, Mode::Put)).unwrap();
    let process = report.process.clone().unwrap();
    assert_eq!((process.pid, process.name.as_str()), (server.pid(), "beanstalkd"));
    assert!(report.phases[0].server.unwrap().resident_bytes > 0);
    assert!(report.version.starts_with("1."), "{}", report.version);
}

#[test]
fn refusals_are_counted() {
    let server = ForeignServer::beanstalkd();
    let mut options = options(server.address, Mode::All);
    options.body_bytes = 65_536;
    let report = quietly(&options).unwrap();
    assert_eq!(report.phases[0].errors.get("JOB_TOO_BIG"), Some(&1_000));
    assert_eq!(report.phases[0].jobs, 0);
    let error = report.verdict().unwrap_err().to_string();
    assert!(error.contains("put: refused with JOB_TOO_BIG: 1000"), "{error}");
    assert!(report.to_string().contains("do not trust"), "{report}");
}

#[test]
fn jobs_of_others_are_not_touched() {
    let server = ForeignServer::beanstalkd();
    let mut options = options(server.address, Mode::PutDelete);
    put_one(server.address, "payments");
    quietly(&options).unwrap().verdict().unwrap();

    options.tube = Some("payments".to_owned());
    let error = quietly(&options).unwrap_err();
    assert!(matches!(&error, BenchError::NotEmpty { jobs: 1, .. }), "{error}");
    assert!(error.to_string().contains("tube payments holds 1 jobs"), "{error}");
}

#[test]
fn stolen_job_is_noticed() {
    let server = ForeignServer::beanstalkd();
    let mut options = options(server.address, Mode::Release);
    options.tube = Some("shared".to_owned());
    let mut robbed = false;
    let report = run(&options, &AtomicBool::new(false), &mut |progress| {
        // The end of the put phase is the one moment at which all jobs are ready.
        if !robbed && progress.phase == "put" && progress.done == progress.total {
            steal_one(server.address, "shared");
            robbed = true;
        }
    })
    .unwrap();
    let error = report.verdict().unwrap_err().to_string();
    assert!(error.contains("holds 999 ready jobs and 0 others instead of 1000"), "{error}");
    assert!(error.contains("confirmed jobs that never came back: 1"), "{error}");
}

#[test]
fn cancelled_run_reports_finished_work() {
    let server = ForeignServer::beanstalkd();
    let mut options = options(server.address, Mode::PutDelete);
    options.jobs = 1_000_000_000;
    let cancel = AtomicBool::new(false);
    let report = run(&options, &cancel, &mut |progress| {
        assert_eq!((progress.mode, progress.phase), (Mode::PutDelete, "put"));
        cancel.store(true, Ordering::Relaxed);
    })
    .unwrap();
    assert!(matches!(report.verdict(), Err(BenchError::Cancelled)));
    assert_eq!(names(&report), ["put"]);
    assert!(report.phases[0].jobs < options.jobs);
    assert!(report.jobs_left.unwrap() >= report.phases[0].jobs);
}

fn names(report: &Report) -> Vec<&'static str> {
    report.phases.iter().map(|phase| phase.name).collect()
}

fn put_one(address: SocketAddr, tube: &str) {
    let stream = speak(address, &format!("use {tube}\r\nput 0 0 60 1\r\nx\r\n"));
    let lines: Vec<_> = BufReader::new(stream).lines().take(2).map(Result::unwrap).collect();
    assert!(lines[1].starts_with("INSERTED"), "{lines:?}");
}

fn steal_one(address: SocketAddr, tube: &str) {
    let mut stream = speak(address, &format!("watch {tube}\r\nreserve-with-timeout 5\r\n"));
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    let reserved = lines.nth(1).unwrap();
    let id = reserved.split(' ').nth(1).unwrap();
    stream.write_all(format!("delete {id}\r\n").as_bytes()).unwrap();
    assert_eq!(lines.nth(1).unwrap(), "DELETED");
}

fn speak(address: SocketAddr, commands: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(commands.as_bytes()).unwrap();
    stream
}
