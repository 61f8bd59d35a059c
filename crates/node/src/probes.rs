//! Probes of containers: commands within them, connections and plain HTTP requests to them.

use crate::process::Orders;
use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::sync::Weak;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The first line of an answer is not longer.
const STATUS_LINE: u64 = 64;

/// What a probe says of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The startup probe passed, or there is none.
    Started,
    Ready,
    Unready,
    /// It has to be started anew: the startup or the liveness probe failed too often.
    Unhealthy,
}

/// How one probe asks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Question {
    Command(Vec<String>),
    Connect(u16),
    Get {
        port: u16,
        path: String,
        host: Option<String>,
        headers: Vec<(String, String)>,
    },
}

/// Whether a container has any probe that this node can ask.
fn question(probe: &Probe, container: &Container) -> Option<Question> {
    if let Some(action) = &probe.exec {
        return action.command.clone().map(Question::Command);
    }
    if let Some(action) = &probe.tcp_socket {
        return port(&action.port, container).map(Question::Connect);
    }
    let action = probe.http_get.as_ref()?;
    if action.scheme.as_deref().unwrap_or("HTTP") != "HTTP" {
        return None;
    }
    let headers = action.http_headers.iter().flatten();
    Some(Question::Get {
        port: port(&action.port, container)?,
        path: action
            .path
            .clone()
            .filter(|path| !path.is_empty())
            .unwrap_or_else(|| "/".to_owned()),
        host: action.host.clone(),
        headers: headers
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect(),
    })
}

/// A port by number or by name.
fn port(port: &IntOrString, container: &Container) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            ports
                .find(|known| known.name.as_ref() == Some(name))?
                .container_port
        }
    };
    u16::try_from(number).ok()
}

/// The probes of a container that this node cannot ask.
pub(crate) fn unsupported(container: &Container) -> Vec<&'static str> {
    let all = [
        ("startupProbe", &container.startup_probe),
        ("livenessProbe", &container.liveness_probe),
        ("readinessProbe", &container.readiness_probe),
    ];
    all.into_iter()
        .filter(|(_, probe)| {
            probe
                .as_ref()
                .is_some_and(|probe| question(probe, container).is_none())
        })
        .map(|(name, _)| name)
        .collect()
}

/// Watches a container until it ends.
pub(crate) async fn watch(
    container: &Container,
    address: &str,
    orders: Weak<Orders>,
    tell: impl Fn(Verdict),
) {
    let known = |probe: &Option<Probe>| {
        let probe = probe.as_ref()?;
        Some((Pace::of(probe), question(probe, container)?))
    };
    if let Some((pace, question)) = known(&container.startup_probe) {
        let mut count = Count::default();
        tokio::time::sleep(pace.delay).await;
        loop {
            let passed = ask(&question, address, &orders, pace.limit).await;
            if orders.upgrade().is_none() {
                return;
            }
            match count.add(passed, pace) {
                Some(true) => break,
                Some(false) => return tell(Verdict::Unhealthy),
                None => tokio::time::sleep(pace.period).await,
            }
        }
    }
    tell(Verdict::Started);
    let (live, ready) = (
        known(&container.liveness_probe),
        known(&container.readiness_probe),
    );
    if ready.is_none() {
        tell(Verdict::Ready);
    }
    let orders = &orders;
    let repeat = |probe: Option<(Pace, Question)>, good: Option<Verdict>, bad: Verdict| {
        let tell = &tell;
        async move {
            let Some((pace, question)) = probe else { return };
            let mut count = Count::default();
            tokio::time::sleep(pace.delay).await;
            while orders.upgrade().is_some() {
                let passed = ask(&question, address, orders, pace.limit).await;
                match count.add(passed, pace) {
                    Some(true) => good.into_iter().for_each(tell),
                    Some(false) => tell(bad),
                    None => {}
                }
                tokio::time::sleep(pace.period).await;
            }
        }
    };
    let live = repeat(live, None, Verdict::Unhealthy);
    let ready = repeat(ready, Some(Verdict::Ready), Verdict::Unready);
    tokio::join!(live, ready);
}

#[derive(Clone, Copy, Debug)]
struct Pace {
    delay: Duration,
    period: Duration,
    limit: Duration,
    passes: u32,
    failures: u32,
}

impl Pace {
    fn of(probe: &Probe) -> Pace {
        let number = |value: Option<i32>, default: u32| {
            value
                .and_then(|value| u32::try_from(value).ok())
                .unwrap_or(default)
        };
        let seconds = |value, default| Duration::from_secs(u64::from(number(value, default)));
        Pace {
            delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10).max(Duration::from_secs(1)),
            limit: seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1)),
            passes: number(probe.success_threshold, 1).max(1),
            failures: number(probe.failure_threshold, 3).max(1),
        }
    }
}

/// Answers in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    last: bool,
    times: u32,
}

impl Count {
    /// Counts an answer; the verdict, once it has come often enough.
    fn add(&mut self, passed: bool, pace: Pace) -> Option<bool> {
        self.times = if passed == self.last {
            self.times.saturating_add(1)
        } else {
            1
        };
        self.last = passed;
        let enough = if passed { pace.passes } else { pace.failures };
        (self.times >= enough).then_some(passed)
    }
}

async fn ask(question: &Question, address: &str, orders: &Weak<Orders>, limit: Duration) -> bool {
    match question {
        Question::Command(words) => Orders::run(orders.clone(), words.clone(), limit).await == Some(0),
        Question::Connect(port) => {
            let connected = tokio::time::timeout(limit, TcpStream::connect((address, *port))).await;
            matches!(connected, Ok(Ok(_)))
        }
        Question::Get {
            port,
            path,
            host,
            headers,
        } => {
            let host = host.as_deref().filter(|host| !host.is_empty()).unwrap_or(address);
            let answer = tokio::time::timeout(limit, get(host, *port, path, headers)).await;
            matches!(answer, Ok(Ok(200..=399)))
        }
    }
}

/// The status of a plain HTTP request.
async fn get(host: &str, port: u16, path: &str, headers: &[(String, String)]) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect((host, port)).await?;
    let mut request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: kube-probe\r\nConnection: close\r\n"
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    let mut start = Vec::new();
    stream.take(STATUS_LINE).read_to_end(&mut start).await?;
    line.push_str(&String::from_utf8_lossy(&start));
    let status = line.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    status.ok_or_else(|| std::io::Error::other("no status"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn a_verdict_needs_as_many_answers_as_the_probe_says() {
        let probe: Probe = from_value(json!({"failureThreshold": 2, "successThreshold": 2})).unwrap();
        let pace = Pace::of(&probe);
        let mut count = Count::default();
        let answers = [true, true, false, true, false, false, true];
        let verdicts = answers.map(|answer| count.add(answer, pace));
        assert_eq!(verdicts, [None, Some(true), None, None, None, Some(false), None]);
    }

    #[test]
    fn what_cannot_be_asked_is_named() {
        let container: Container = from_value(json!({
            "name": "c",
            "ports": [{"name": "web", "containerPort": 80}],
            "startupProbe": {"httpGet": {"port": "web"}},
            "livenessProbe": {"grpc": {"port": 1}},
            "readinessProbe": {"httpGet": {"port": 1, "scheme": "HTTPS"}},
        }))
        .unwrap();
        assert_eq!(unsupported(&container), ["livenessProbe", "readinessProbe"]);
        let startup = container.startup_probe.as_ref().unwrap();
        let expected = Question::Get {
            port: 80,
            path: "/".to_owned(),
            host: None,
            headers: Vec::new(),
        };
        assert_eq!(question(startup, &container), Some(expected));
    }
}
