//! The example's program as a child process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;

use crate::example::program;

/// A server at work, or at its end. It is killed when it is dropped.
pub(super) struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(super) address: SocketAddr,
}

/// A command of the program on a store, not yet started.
pub(super) fn command(store: &Path, args: &[&str]) -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let mut command = Command::new(PROGRAM.get_or_init(|| program("approvals")));
    command.arg("--store").arg(store).args(args);
    command
}

impl Server {
    /// Starts it on a free port, and waits until it listens.
    pub(super) fn start(store: &Path, args: &[&str]) -> Self {
        let mut command = command(store, args);
        command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        match line.trim_end().strip_prefix("listening on http://") {
            Some(address) => Self { child, out, address: address.parse().unwrap() },
            None => panic!("{line:?}, {:?}", child.wait_with_output()),
        }
    }

    /// Ends it by SIGKILL.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Reads on to its end.
    pub(super) fn finish(mut self) -> Output {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.out.read_to_end(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
        Output { status: self.child.wait().unwrap(), stdout, stderr }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already does not mind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
