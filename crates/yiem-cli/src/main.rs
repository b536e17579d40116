//! The command yiem.
//!
//! Knows: which command runs, and with which exit code the process ends.
//! Does not know: what the commands do.

mod args;
mod command;
mod conversation;
mod demo;
mod endpoint;
mod failure;
mod interrupt;
mod patience;
mod screen;
mod sources;
mod suggestion;
mod watch;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => suggestion::with_suggestion(error).exit(),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return end(&Failure::new(format!(
                "the runtime could not be started: {error}"
            )));
        }
    };
    let done = runtime.block_on(run(cli));
    // What still runs in the background has had its time; a blocked thread must not hold us up.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => end(&failure),
    }
}

async fn run(cli: Cli) -> Result<(), Failure> {
    let shared = &cli.shared;
    match &cli.command {
        Command::Run(args) => command::run::run(args, shared).await,
        Command::Chat => command::chat::run(shared).await,
        Command::Tools(args) => or_interrupted(command::tools::run(args, shared)).await,
        Command::Call(args) => or_interrupted(command::call::run(args, shared)).await,
        Command::Wire { direction } => command::wire::run(*direction),
        Command::Serve(args) => command::serve::run(args, shared).await,
    }
}

/// Runs until it is done or the user ends it; what was begun is dropped then.
async fn or_interrupted(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let mut interrupts = interrupt::Interrupts::listen()?;
    tokio::select! {
        done = work => done,
        _ = interrupts.next() => Err(Failure::interrupted()),
    }
}

fn end(failure: &Failure) -> ExitCode {
    if !failure.line().is_empty() {
        // Whoever closed standard error has the exit code.
        let _ = writeln!(std::io::stderr(), "yiem: {}", failure.line());
    }
    failure.exit_code()
}
