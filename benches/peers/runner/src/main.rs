//! Plays the scenarios with each contender against the scripted server, and prints a table of
//! medians and of ratios to the floor (P-1).
//!
//!   peer-runner BIN_DIR [--reps N] [--scenarios a,b] [--only name,name] [--audit]
//!               [--instructions] [--gate] [--add NAME=COMMAND]
//!
//! A contender is a command that takes BASE_URL and a scenario's name and prints one JSON line
//! with `wall_us`. Loopback only; everything that it starts it ends.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

/// What P-1 names, and what it allows.
const GATED: &str = "loop-200,sloop-200,fat-200,loop-1000,par-64,stream-20000,args-20000";
const INSTRUCTIONS_AT_MOST: f64 = 1.2;
const AUDITED: &str = "loop-10,sloop-10,fat-5,par-64,stream-500,args-200";
const LIMIT: Duration = Duration::from_secs(300);

struct Options {
    bin: PathBuf,
    reps: usize,
    scenarios: Vec<String>,
    only: Option<Vec<String>>,
    audit: bool,
    instructions: bool,
    gate: bool,
    added: Vec<(String, Vec<String>)>,
}

fn options() -> Options {
    let mut args = std::env::args().skip(1);
    let bin = args.next().expect("the folder of the binaries comes first");
    let mut o = Options {
        bin: bin.into(),
        reps: 5,
        scenarios: Vec::new(),
        only: None,
        audit: false,
        instructions: false,
        gate: false,
        added: Vec::new(),
    };
    let list = |s: String| s.split(',').map(str::to_owned).collect::<Vec<_>>();
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        match arg.as_str() {
            "--reps" => o.reps = value().parse().expect("a number"),
            "--scenarios" => o.scenarios = list(value()),
            "--only" => o.only = Some(list(value())),
            "--audit" => o.audit = true,
            "--instructions" => o.instructions = true,
            "--gate" => o.gate = true,
            "--add" => {
                let text = value();
                let (name, command) = text.split_once('=').expect("--add NAME=COMMAND");
                let command = command.split_whitespace().map(str::to_owned).collect();
                o.added.push((name.to_owned(), command));
            }
            other => panic!("no such option: {other}"),
        }
    }
    if o.scenarios.is_empty() {
        o.scenarios = list(if o.audit { AUDITED } else { GATED }.to_owned());
    }
    o
}

/// The scripted server, ended when dropped.
struct Mock {
    child: Child,
    port: u16,
}

impl Mock {
    fn start(o: &Options) -> Self {
        let mut child = Command::new(o.bin.join("peer-mock"))
            .arg("0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("peer-mock starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output is a pipe");
        BufReader::new(out).read_line(&mut line).expect("it says its port");
        let port = line.split_whitespace().nth(1).and_then(|p| p.parse().ok()).expect("a port");
        Self { child, port }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.get("/quit");
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Default, Clone)]
struct Sample {
    wall_ms: f64,
    cpu_ms: f64,
    rss_mib: f64,
    first_us: f64,
    last_us: f64,
}

fn children_cpu_ms() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("rusage");
    let ms = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 * 1e3 + t.tv_usec() as f64 / 1e3;
    ms(usage.user_time()) + ms(usage.system_time())
}

fn high_water_mib(pid: u32) -> f64 {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .ok()
        .and_then(|s| {
            let line = s.lines().find(|l| l.starts_with("VmHWM"))?;
            line.split_whitespace().nth(1)?.parse::<f64>().ok()
        })
        .map_or(0.0, |kib| kib / 1024.0)
}

/// Runs a command to its end; its output, its processor time, its peak memory.
fn play(command: &[String]) -> Result<(String, f64, f64), String> {
    let before = children_cpu_ms();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|e| format!("{}: {e}", command[0]))?;
    let started = Instant::now();
    let mut peak: f64 = 0.0;
    let status = loop {
        peak = peak.max(high_water_mib(child.id()));
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None if started.elapsed() > LIMIT => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("not done after {} s", LIMIT.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let mut out = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut out).map_err(|e| e.to_string())?;
    }
    if !status.success() {
        return Err(format!("{status}"));
    }
    Ok((out, children_cpu_ms() - before, peak))
}

fn contenders(o: &Options) -> Vec<(String, Vec<String>)> {
    let bin = |name: &str| o.bin.join(name).display().to_string();
    let of = |name: &str, command: &[String]| (name.to_owned(), command.to_vec());
    let holes = ["{base}".to_owned(), "{scenario}".to_owned()];
    let mut all = vec![
        of("floor", &[&[bin("peer-floor")], &holes[..]].concat()),
        of("floor-typed", &[&[bin("peer-floor")], &holes[..], &["typed".to_owned()]].concat()),
        of("yiem", &[&[bin("peer-yiem")], &holes[..]].concat()),
    ];
    all.extend(o.added.iter().cloned());
    if let Some(only) = &o.only {
        all.retain(|(name, _)| name == "floor" || only.contains(name));
    }
    all
}

fn filled(command: &[String], mock: &Mock, run: &str, scenario: &str) -> Vec<String> {
    let base = format!("http://127.0.0.1:{}/run/{run}/{scenario}/v1", mock.port);
    command
        .iter()
        .map(|part| part.replace("{base}", &base).replace("{scenario}", scenario))
        .collect()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn audit(o: &Options, mock: &Mock) -> bool {
    let mut good = true;
    for scenario in &o.scenarios {
        for (name, command) in contenders(o) {
            let run = format!("audit-{name}-{scenario}");
            let played = play(&filled(&command, mock, &run, scenario));
            let stats = mock.get(&format!("/stats/{run}")).unwrap_or_default();
            let faults = stats["faults"].as_array().cloned().unwrap_or_default();
            let ok = played.is_ok() && faults.is_empty() && number(&stats, "requests") > 0.0;
            good &= ok;
            println!(
                "{} {name} {scenario}: {} requests, {} streamed {}",
                if ok { "ok " } else { "BAD" },
                number(&stats, "requests"),
                number(&stats, "streamed"),
                played.err().unwrap_or_else(|| faults.iter().take(3).map(|f| format!("{f} ")).collect()),
            );
        }
    }
    good
}

fn times(o: &Options, mock: &Mock) {
    let mut samples: BTreeMap<(usize, usize), Vec<Sample>> = BTreeMap::new();
    let all = contenders(o);
    for rep in 0..o.reps {
        for (s, scenario) in o.scenarios.iter().enumerate() {
            for (c, (name, command)) in all.iter().enumerate() {
                let run = format!("{name}-{scenario}-{rep}");
                match play(&filled(command, mock, &run, scenario)) {
                    Err(e) => eprintln!("{name} {scenario}: {e}"),
                    Ok((out, cpu_ms, rss_mib)) => {
                        let own: Value = out.lines().last().and_then(|l| serde_json::from_str(l).ok()).unwrap_or_default();
                        let stats = mock.get(&format!("/stats/{run}")).unwrap_or_default();
                        samples.entry((s, c)).or_default().push(Sample {
                            wall_ms: number(&own, "wall_us") / 1e3,
                            cpu_ms,
                            rss_mib,
                            first_us: number(&stats, "turn_us_first_tenth"),
                            last_us: number(&stats, "turn_us_last_tenth"),
                        });
                    }
                }
            }
        }
    }
    println!("| scenario | contender | wall ms | x floor | CPU ms | x floor | peak MiB | us a turn, first tenth | last tenth |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for (s, scenario) in o.scenarios.iter().enumerate() {
        let of = |c: usize, f: fn(&Sample) -> f64| median(samples.get(&(s, c)).into_iter().flatten().map(f));
        for (c, (name, _)) in all.iter().enumerate() {
            let (wall, cpu) = (of(c, |x| x.wall_ms), of(c, |x| x.cpu_ms));
            println!(
                "| {scenario} | {name} | {wall:.1} | {:.2} | {cpu:.0} | {:.2} | {:.1} | {:.0} | {:.0} |",
                wall / of(0, |x| x.wall_ms),
                cpu / of(0, |x| x.cpu_ms),
                of(c, |x| x.rss_mib),
                of(c, |x| x.first_us),
                of(c, |x| x.last_us),
            );
        }
    }
}

/// Instructions of a run under cachegrind, in millions: a figure that load does not move.
fn instructions(command: &[String]) -> Result<f64, String> {
    let out = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .args(command)
        .output()
        .map_err(|e| format!("valgrind: {e}"))?;
    let text = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        return Err(format!("{}: {}", out.status, text.lines().last().unwrap_or_default()));
    }
    let line = text.lines().find(|l| l.contains("I") && l.contains("refs:")).ok_or("no count")?;
    let digits: String = line.split("refs:").nth(1).unwrap_or("").chars().filter(char::is_ascii_digit).collect();
    digits.parse::<f64>().map(|n| n / 1e6).map_err(|e| e.to_string())
}

fn counts(o: &Options, mock: &Mock) -> bool {
    println!("| scenario | contender | million instructions | x floor |");
    println!("|---|---|---|---|");
    let mut good = true;
    for scenario in &o.scenarios {
        let mut floor = 0.0;
        for (name, command) in contenders(o) {
            let run = format!("count-{name}-{scenario}");
            match instructions(&filled(&command, mock, &run, scenario)) {
                Err(e) => {
                    good = false;
                    println!("| {scenario} | {name} | {e} | |");
                }
                Ok(n) => {
                    if name == "floor" {
                        floor = n;
                    }
                    println!("| {scenario} | {name} | {n:.1} | {:.2} |", n / floor);
                    good &= name != "yiem" || n / floor <= INSTRUCTIONS_AT_MOST;
                }
            }
        }
    }
    good || !o.gate
}

fn main() {
    let o = options();
    let mock = Mock::start(&o);
    let good = if o.audit {
        audit(&o, &mock)
    } else if o.instructions {
        counts(&o, &mock)
    } else {
        times(&o, &mock);
        true
    };
    drop(mock);
    if !good {
        eprintln!("not as it must be: see above");
        std::process::exit(1);
    }
}
