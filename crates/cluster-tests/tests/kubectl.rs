//! A real kubectl drives the embedded plane: what users type, and what they see, as one golden transcript.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use volcano_apiserver::{LogRequest, LogSource, Options, Plane};
use volcano_testcluster::binaries::{Binaries, Program};

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: hello, labels: {app: hello}}
spec:
  nodeName: n1
  restartPolicy: Never
  containers:
  - {name: main, image: 'busybox:1', command: [sh, -c, 'echo hello']}
";

const QUEUE: &str = "
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 2, reclaimable: true, parent: root}
";

/// One line for every pod.
struct Logs;

impl LogSource for Logs {
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<BoxStream<'static, Bytes>, String>> {
        let line = format!("{} of {} says hello\n", request.container, request.pod);
        let stream = futures::stream::iter([Bytes::from(line)]).boxed();
        async move { Ok(stream) }.boxed()
    }
}

struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
    transcript: String,
}

impl Kubectl {
    fn start(&self, arguments: &str) -> Child {
        Command::new(&self.program)
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .args(arguments.split_whitespace())
            .env("HOME", &self.home)
            .env("KUBECACHEDIR", self.home.join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs a command that follows what happens, another one once the first has shown what there is, and writes down what
    /// both say, up to the line with these words.
    fn follow(&mut self, arguments: &str, other: &str, last: &str) {
        let mut child = self.start(&format!("{arguments} --request-timeout=30s"));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen: Vec<String> = lines.by_ref().take(2).map(Result::unwrap).collect();
        let before = self.transcript.len();
        self.run(other, "");
        let meanwhile = self.transcript.split_off(before);
        while !seen.last().is_some_and(|line| line.contains(last)) {
            seen.push(lines.next().unwrap().unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        self.transcript += &format!("$ kubectl {arguments} &\n{meanwhile}{}\n\n", seen.join("\n"));
    }

    /// Runs a command and writes down what it says.
    fn run(&mut self, arguments: &str, input: &str) {
        let mut child = self.start(arguments);
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        self.transcript += &format!("$ kubectl {arguments}\n");
        for text in [&output.stdout, &output.stderr] {
            self.transcript += &String::from_utf8_lossy(text);
        }
        if !output.status.success() {
            self.transcript += &format!("[exit code {}]\n", output.status.code().unwrap_or(-1));
        }
        self.transcript.push('\n');
    }
}

/// What differs from run to run.
fn steady(transcript: &str) -> String {
    let mut lines = Vec::new();
    for line in transcript.lines() {
        let mut line = line.trim_end().to_owned();
        for key in [
            "uid:",
            "creationTimestamp:",
            "Start Time:",
            "resourceVersion:",
            "Creation Timestamp:",
            "Resource Version:",
            "UID:",
        ] {
            if let Some((before, _)) = line.split_once(key) {
                line = format!("{before}{key} …");
            }
        }
        let words: Vec<String> = line
            .split(' ')
            .map(|word| {
                if is_age(word) {
                    "AGE".to_owned()
                } else {
                    word.to_owned()
                }
            })
            .collect();
        lines.push(narrow(&words.join(" ")));
    }
    lines.join("\n")
}

/// Columns are as wide as what is in them, ages too: gaps become two blanks.
fn narrow(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let columns = line
        .trim()
        .split("  ")
        .map(str::trim)
        .filter(|column| !column.is_empty());
    format!("{}{}", &line[..indent], columns.collect::<Vec<_>>().join("  "))
}

fn is_age(word: &str) -> bool {
    word.len() > 1
        && word.ends_with('s')
        && word[..word.len() - 1]
            .chars()
            .all(|letter| letter.is_ascii_digit())
}

async fn plane(directory: &Path) -> Plane {
    let options = Options {
        crds: volcano_api::crd::all(),
        ..Options::default()
    };
    let plane = Plane::start(options).await.unwrap();
    plane.set_logs(Arc::new(Logs));
    plane.serve(&directory.join("kubeconfig")).await.unwrap();
    plane
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_does_what_it_does_on_kubernetes() {
    let directory = tempfile::tempdir().unwrap();
    let _plane = plane(directory.path()).await;
    let program = Binaries::locate().unwrap().ensure(Program::Kubectl).unwrap();
    let home = directory.path().to_owned();
    let transcript = tokio::task::spawn_blocking(move || {
        let mut kubectl = Kubectl {
            program,
            kubeconfig: home.join("kubeconfig"),
            home,
            transcript: String::new(),
        };
        let k = &mut kubectl;
        k.run("get namespaces", "");
        k.run("apply -f -", POD);
        k.run("apply -f -", POD);
        k.run("apply -f -", &POD.replace("app: hello", "app: hi"));
        k.run("get pods", "");
        k.run("get pods -o wide", "");
        k.run(
            "get pod hello -o jsonpath={.spec.restartPolicy}/{.metadata.labels.app}",
            "",
        );
        k.run("create -f -", POD);
        k.run("create configmap settings --from-literal=a=1", "");
        k.run("get cm,sa", "");
        k.run("apply --server-side -f -", QUEUE);
        k.run("apply --server-side -f -", QUEUE);
        k.run(
            "apply --server-side --field-manager=other -f -",
            &QUEUE.replace("weight: 2", "weight: 3"),
        );
        k.run("get queues", "");
        k.run("get queue research -o yaml", "");
        k.run(
            "patch queue research --type=merge -p {\"spec\":{\"weight\":5}}",
            "",
        );
        k.run("patch pod hello -p {\"metadata\":{\"labels\":{\"x\":\"y\"}}}", "");
        k.run("label pod hello stage=one", "");
        k.run("annotate pod hello note=two", "");
        k.run("apply -f -", &QUEUE.replace("weight: 2", "wieght: 2"));
        k.run("apply -f -", &QUEUE.replace("weight: 2", "weight: heavy"));
        k.run("logs hello", "");
        k.follow(
            "get pods -l app=hi -w",
            "patch pod hello --subresource=status --type=merge -p {\"status\":{\"phase\":\"Succeeded\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}}",
            "Succeeded",
        );
        k.run(
            "wait --for=jsonpath={.status.phase}=Succeeded pod/hello --timeout=5s",
            "",
        );
        k.run("wait --for=condition=Ready=False pod/hello --timeout=5s", "");
        k.run("describe pod hello", "");
        k.run("describe queue research", "");
        k.run("auth can-i create pods", "");
        k.run("api-resources --api-group=scheduling.volcano.sh", "");
        k.follow("get pods -w --output-watch-events", "delete pod hello", "DELETED");
        k.run("create -f -", POD);
        k.run("delete queue research", "");
        k.run("get pods", "");
        k.run("delete namespace default", "");
        k.run("create namespace team", "");
        k.run("delete namespace team", "");
        k.run("get queue none", "");
        kubectl.transcript
    });
    insta::assert_snapshot!(steady(&transcript.await.unwrap()));
}
