//! Object lines as Kubernetes objects.

use super::text::{Input, Problem};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use volcano_api::time::Time;
use volcano_engine::model::delta::Delta;

/// 2026-01-01T00:00:00Z, second 0 of every scenario.
const BEGINNING_SECONDS: i64 = 1_767_225_600;

/// A moment of a scenario.
pub fn moment(seconds: i64) -> Time {
    Time::from_unix_seconds(BEGINNING_SECONDS + seconds)
}

/// An object under its kind and name.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its kind.
    pub kind: String,
    /// Its namespace, empty for objects that have none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The whole of it.
    pub value: Value,
}

/// What a line says happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// An object is there, or has changed.
    Set(Box<Object>),
    /// The eviction of a pod, decided in the cycle before, takes its time.
    Leaves((String, String)),
    /// Something else.
    Other(Box<Delta>),
}

/// The names that lines gave, to read further lines by and to print outcomes with.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Namespace of each group, in the order of the lines.
    pub groups: Vec<(String, String)>,
    /// `namespace/name` of each pod, with its group and its short name, in the order of the lines.
    pub pods: Vec<(String, String, String)>,
    priority_classes: BTreeMap<String, i64>,
    seconds: i64,
}

impl Names {
    fn namespace_of(&self, group: &str) -> Result<&str, String> {
        let known = self.groups.iter().find(|(name, _)| name == group);
        known
            .map(|(_, namespace)| namespace.as_str())
            .ok_or_else(|| format!("no group `{group}` above"))
    }

    /// `GROUP/NAME` or `NAME` as namespace and name of the pod.
    fn pod_key(&self, text: &str) -> Result<(String, String), String> {
        match text.split_once('/') {
            Some((group, name)) => Ok((self.namespace_of(group)?.to_owned(), format!("{group}-{name}"))),
            None => Ok(("default".to_owned(), text.to_owned())),
        }
    }
}

/// Reads all lines: each with the cycle before which it happens.
pub fn read(inputs: &[Input], names: &mut Names) -> Result<Vec<(usize, Event)>, Vec<Problem>> {
    let mut events: Vec<(usize, Event)> = Vec::new();
    let mut problems = Vec::new();
    for name in ["root", "default"] {
        if !inputs
            .iter()
            .any(|input| input.words[0] == "queue" && input.words.get(1).is_some_and(|n| n == name))
        {
            let value = json!({"spec": {"weight": 1}, "status": {"state": "Open"}});
            events.push((1, Event::Set(Box::new(object("Queue", "", name, 0, value)))));
        }
    }
    for input in inputs {
        names.seconds += 1;
        match read_line(&input.words, names) {
            Ok(event) => events.push((input.cycle, event)),
            Err(message) => problems.push(Problem {
                line: input.line,
                message,
            }),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    settle_phases(&mut events);
    Ok(events)
}

fn read_line(words: &[String], names: &mut Names) -> Result<Event, String> {
    if let [line @ .., with, patch] = words
        && with == "with"
    {
        let patch: Value = serde_json::from_str(patch).map_err(|error| error.to_string())?;
        let mut event = read_line(line, names)?;
        match &mut event {
            Event::Set(object) => merge(&mut object.value, patch),
            _ => return Err("only an object can be `with` more".to_owned()),
        }
        return Ok(event);
    }
    let (kind, rest) = (words[0].as_str(), &words[1..]);
    let set = |object| Ok(Event::Set(Box::new(object)));
    match kind {
        "node" => set(node(rest, names)?),
        "queue" => set(queue(rest, names)?),
        "group" => set(group(rest, names)?),
        "pod" => set(pod(rest, names)?),
        "priorityclass" => set(priority_class(rest, names)?),
        "namespace" => set(namespace(rest, names)?),
        "object" => set(raw(&rest[0])?),
        "leaves" => match rest {
            [text] => names.pod_key(text).map(Event::Leaves),
            _ => Err("one pod `leaves`".to_owned()),
        },
        "gone" | "bindfailed" | "evictfailed" => {
            happening(kind, rest, names).map(|d| Event::Other(Box::new(d)))
        }
        _ => Err(format!("`{kind}` is no kind of line")),
    }
}

/// A group is `Running` if a pod of it has ever had a node, else `Inqueue`, unless its line says.
fn settle_phases(events: &mut [(usize, Event)]) {
    let mut placed: Vec<(String, String)> = Vec::new();
    for (_, event) in events.iter() {
        if let Event::Set(pod) = event
            && pod.kind == "Pod"
            && pod.value["spec"]["nodeName"].is_string()
            && let Some(group) = pod.value["metadata"]["annotations"]["scheduling.k8s.io/group-name"].as_str()
        {
            placed.push((pod.namespace.clone(), group.to_owned()));
        }
    }
    for (_, event) in events {
        if let Event::Set(group) = event
            && group.kind == "PodGroup"
            && group.value["status"]["phase"].is_null()
        {
            let ran = placed
                .iter()
                .any(|(namespace, name)| *namespace == group.namespace && *name == group.name);
            group.value["status"]["phase"] = json!(if ran { "Running" } else { "Inqueue" });
        }
    }
}

/// Adds a patch to a value: maps key by key, lists element by element, anything else is replaced.
fn merge(value: &mut Value, patch: Value) {
    match (value, patch) {
        (Value::Object(map), Value::Object(patch)) => {
            for (key, patch) in patch {
                merge(map.entry(key).or_insert(Value::Null), patch);
            }
        }
        (Value::Array(list), Value::Array(patch)) => {
            for (at, patch) in patch.into_iter().enumerate() {
                match list.get_mut(at) {
                    Some(item) => merge(item, patch),
                    None => list.push(patch),
                }
            }
        }
        (value, patch) => *value = patch,
    }
}

// ---- words of a line

/// The words after the name of an object, taken one by one.
struct Words<'a> {
    list: std::slice::Iter<'a, String>,
}

/// One word: `key=value`, or a key with the next word as its value, or a key alone.
enum Word<'a> {
    Pair(&'a str, &'a str),
    Alone(&'a str),
}

impl<'a> Words<'a> {
    fn new(words: &'a [String]) -> Result<(&'a str, Self), String> {
        let (name, rest) = words.split_first().ok_or("a name is missing")?;
        Ok((name, Words { list: rest.iter() }))
    }

    fn next(&mut self) -> Option<Word<'a>> {
        let word = self.list.next()?;
        Some(
            word.split_once('=')
                .map_or(Word::Alone(word), |(key, value)| Word::Pair(key, value)),
        )
    }

    /// The value that stands after a key.
    fn value(&mut self, key: &str) -> Result<&'a str, String> {
        self.list
            .next()
            .map(String::as_str)
            .ok_or_else(|| format!("nothing after `{key}`"))
    }

    /// `key=value` that stands after a key.
    fn pair(&mut self, key: &str) -> Result<(&'a str, &'a str), String> {
        let value = self.value(key)?;
        value
            .split_once('=')
            .ok_or_else(|| format!("`{key} {value}` has no `=`"))
    }
}

fn unknown(kind: &str, word: &str) -> String {
    format!("`{word}` means nothing on a {kind} line")
}

fn integer(text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a whole number"))
}

fn boolean(text: &str) -> Result<bool, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is neither true nor false"))
}

/// The resource of a word, if it is one.
fn resource(key: &str) -> Option<&str> {
    match key {
        "gpu" => Some("nvidia.com/gpu"),
        "cpu" | "memory" | "pods" | "ephemeral-storage" => Some(key),
        _ => (key.contains('/') || key.starts_with("hugepages-")).then_some(key),
    }
}

/// `cpu:4,memory:8Gi`; `none` for an empty list.
fn resource_list(text: &str) -> Result<Value, String> {
    let mut list = Map::new();
    for item in text.split(',').filter(|item| *item != "none") {
        let (key, amount) = item
            .rsplit_once(':')
            .ok_or_else(|| format!("`{item}` has no `:`"))?;
        let name = resource(key).ok_or_else(|| format!("`{key}` is no resource"))?;
        list.insert(name.to_owned(), json!(amount));
    }
    Ok(Value::Object(list))
}

fn object(kind: &str, namespace: &str, name: &str, created: i64, mut value: Value) -> Object {
    let metadata = &mut value["metadata"];
    metadata["name"] = json!(name);
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    metadata["uid"] = json!(format!("{}-{namespace}-{name}", kind.to_lowercase()));
    metadata["creationTimestamp"] = json!(moment(created).to_string());
    Object {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        value,
    }
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        _ => *list = json!([item]),
    }
}

// ---- kinds of lines

fn node(words: &[String], names: &Names) -> Result<Object, String> {
    let (name, mut words) = Words::new(words)?;
    let mut value = json!({"status": {"allocatable": {"pods": "110"}}});
    let mut created = names.seconds;
    while let Some(word) = words.next() {
        match word {
            Word::Pair("created", seconds) => created = integer(seconds)?,
            Word::Pair(key, amount) => {
                let key = resource(key).ok_or_else(|| unknown("node", key))?;
                value["status"]["allocatable"][key] = json!(amount);
            }
            Word::Alone("unschedulable") => value["spec"]["unschedulable"] = json!(true),
            Word::Alone("taint") => push(&mut value["spec"]["taints"], taint(words.value("taint")?)?),
            Word::Alone(key @ ("label" | "annotation")) => mark(&mut value, key, words.pair(key)?),
            Word::Alone(key) => return Err(unknown("node", key)),
        }
    }
    Ok(object("Node", "", name, created, value))
}

fn mark(value: &mut Value, key: &str, (name, text): (&str, &str)) {
    value["metadata"][format!("{key}s")][name] = json!(text);
}

/// `K=V:EFFECT` or `K:EFFECT`.
fn taint(text: &str) -> Result<Value, String> {
    let (pair, effect) = text
        .rsplit_once(':')
        .ok_or_else(|| format!("`{text}` has no effect"))?;
    if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        return Err(format!("`{effect}` is no effect of a taint"));
    }
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    Ok(json!({"key": key, "value": value, "effect": effect}))
}

/// `K=V:EFFECT`, `K=V`, `K:EFFECT`, `K`, `*:EFFECT` or `*`.
fn toleration(text: &str) -> Value {
    let (pair, effect) = text.rsplit_once(':').unwrap_or((text, ""));
    match pair.split_once('=') {
        Some((key, value)) => json!({"key": key, "operator": "Equal", "value": value, "effect": effect}),
        None if pair == "*" => json!({"operator": "Exists", "effect": effect}),
        None => json!({"key": pair, "operator": "Exists", "effect": effect}),
    }
}

fn queue(words: &[String], names: &Names) -> Result<Object, String> {
    let (name, mut words) = Words::new(words)?;
    let mut value = json!({"spec": {"weight": 1}, "status": {"state": "Open"}});
    let mut created = names.seconds;
    while let Some(word) = words.next() {
        let spec = &mut value["spec"];
        match word {
            Word::Pair("created", seconds) => created = integer(seconds)?,
            Word::Pair(key @ ("weight" | "priority"), number) => spec[key] = json!(integer(number)?),
            Word::Pair(key @ ("capability" | "deserved"), list) => spec[key] = resource_list(list)?,
            Word::Pair("guarantee", list) => spec["guarantee"] = json!({"resource": resource_list(list)?}),
            Word::Pair("parent", parent) => spec["parent"] = json!(parent),
            Word::Pair("reclaimable", yes) => spec["reclaimable"] = json!(boolean(yes)?),
            Word::Pair("dequeue", "fifo") => spec["dequeueStrategy"] = json!("fifo"),
            Word::Pair("dequeue", "traverse") => spec["dequeueStrategy"] = json!("traverse"),
            Word::Pair("state", state @ ("Open" | "Closed" | "Closing" | "Unknown")) => {
                value["status"]["state"] = json!(state);
            }
            Word::Alone(key @ ("label" | "annotation")) => mark(&mut value, key, words.pair(key)?),
            Word::Pair(key, _) | Word::Alone(key) => return Err(unknown("queue", key)),
        }
    }
    Ok(object("Queue", "", name, created, value))
}

fn priority_class(words: &[String], names: &mut Names) -> Result<Object, String> {
    let (name, mut words) = Words::new(words)?;
    let number = integer(words.value(name)?)?;
    let mut value = json!({"value": number});
    match words.next() {
        None => {}
        Some(Word::Alone("default")) => value["globalDefault"] = json!(true),
        Some(Word::Pair(key, _) | Word::Alone(key)) => return Err(unknown("priorityclass", key)),
    }
    names.priority_classes.insert(name.to_owned(), number);
    Ok(object("PriorityClass", "", name, names.seconds, value))
}

fn namespace(words: &[String], names: &Names) -> Result<Object, String> {
    let (name, mut words) = Words::new(words)?;
    let mut value = json!({});
    while let Some(word) = words.next() {
        match word {
            Word::Alone(key @ ("label" | "annotation")) => mark(&mut value, key, words.pair(key)?),
            Word::Pair(key, _) | Word::Alone(key) => return Err(unknown("namespace", key)),
        }
    }
    Ok(object("Namespace", "", name, names.seconds, value))
}

fn group(words: &[String], names: &mut Names) -> Result<Object, String> {
    let (name, mut words) = Words::new(words)?;
    let mut value = json!({"spec": {"minMember": 1}, "status": {}});
    let (mut created, mut namespace) = (names.seconds, "default");
    while let Some(word) = words.next() {
        let spec = &mut value["spec"];
        match word {
            Word::Pair("created", seconds) => created = integer(seconds)?,
            Word::Pair("ns", ns) => namespace = ns,
            Word::Pair("min", number) => spec["minMember"] = json!(integer(number)?),
            Word::Pair("queue", queue) => spec["queue"] = json!(queue),
            Word::Pair("priority", class) => spec["priorityClassName"] = json!(class),
            Word::Pair("minResources", list) => spec["minResources"] = resource_list(list)?,
            Word::Pair("roles", list) => {
                for item in list.split(',') {
                    let (role, minimum) = item
                        .split_once(':')
                        .ok_or_else(|| format!("`{item}` has no `:`"))?;
                    spec["minTaskMember"][role] = json!(integer(minimum)?);
                }
            }
            Word::Pair("subgroups", list) => {
                for item in list.split(',') {
                    push(&mut spec["subGroupPolicy"], sub_group(item)?);
                }
            }
            Word::Pair("topology", topology) => {
                let (mode, tier) = topology
                    .split_once(':')
                    .ok_or_else(|| format!("`{topology}` has no tier"))?;
                spec["networkTopology"] = json!({"mode": mode, "highestTierAllowed": integer(tier)?});
            }
            Word::Pair("phase", phase @ ("Pending" | "Inqueue" | "Running" | "Unknown" | "Completed")) => {
                value["status"]["phase"] = json!(phase);
            }
            Word::Pair("preemptable", yes) => mark(&mut value, "annotation", ("volcano.sh/preemptable", yes)),
            Word::Alone(key @ ("label" | "annotation")) => mark(&mut value, key, words.pair(key)?),
            Word::Pair(key, _) | Word::Alone(key) => return Err(unknown("group", key)),
        }
    }
    match names.groups.iter().find(|(known, _)| known == name) {
        Some((_, known)) if known != namespace => {
            return Err(format!("`{name}` is in namespace {known} above"));
        }
        Some(_) => {}
        None => names.groups.push((name.to_owned(), namespace.to_owned())),
    }
    Ok(object("PodGroup", namespace, name, created, value))
}

/// `NAME:SIZE:MINIMUM@LABEL`, or without a label for one sub-group of all pods.
fn sub_group(text: &str) -> Result<Value, String> {
    let (numbers, label) = match text.split_once('@') {
        Some((numbers, label)) => (numbers, Some(label)),
        None => (text, None),
    };
    let [name, size, minimum] = numbers.split(':').collect::<Vec<_>>()[..] else {
        return Err(format!("`{text}` is not `NAME:SIZE:MINIMUM@LABEL`"));
    };
    let keys: Vec<Value> = label.into_iter().map(|label| json!(label)).collect();
    let (size, minimum) = (integer(size)?, integer(minimum)?);
    Ok(json!({"name": name, "subGroupSize": size, "minSubGroups": minimum, "matchLabelKeys": keys}))
}

fn pod(words: &[String], names: &mut Names) -> Result<Object, String> {
    let (key, mut words) = Words::new(words)?;
    let (namespace, name) = names.pod_key(key)?;
    let mut value = json!({"spec": {"schedulerName": "volcano", "containers": [{"name": "main"}]}});
    let (group, short) = key.split_once('/').unwrap_or(("", key));
    if short.parse::<usize>().is_ok() {
        return Err(format!("`{short}` would read as a number of pods"));
    }
    if !group.is_empty() {
        value["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = json!(group);
    }
    let mut created = names.seconds;
    let mut state = "";
    while let Some(word) = words.next() {
        match word {
            Word::Pair("created", seconds) => created = integer(seconds)?,
            Word::Pair(key, amount) if resource(key).is_some() => {
                let name = resource(key).unwrap_or(key);
                value["spec"]["containers"][0]["resources"]["requests"][name] = json!(amount);
            }
            Word::Alone(word @ ("bound" | "running" | "succeeded" | "failed" | "unknown" | "deleting")) => {
                state = word
            }
            word => pod_word(&mut value, word, &mut words, names)?,
        }
    }
    let placed = value["spec"]["nodeName"].is_string();
    let phase = match state {
        "" if placed => "Running",
        "" | "bound" => "Pending",
        "running" | "deleting" if placed => "Running",
        "deleting" => "Pending",
        "running" => return Err("a running pod is `on` a node".to_owned()),
        "succeeded" => "Succeeded",
        "failed" => "Failed",
        _ => "Unknown",
    };
    if state == "bound" && !placed {
        return Err("a bound pod is `on` a node".to_owned());
    }
    value["status"]["phase"] = json!(phase);
    if state == "deleting" {
        value["metadata"]["deletionTimestamp"] = json!(moment(created).to_string());
    }
    let full = format!("{namespace}/{name}");
    if !names.pods.iter().any(|(known, _, _)| *known == full) {
        names.pods.push((full, group.to_owned(), short.to_owned()));
    }
    Ok(object("Pod", &namespace, &name, created, value))
}

fn pod_word(value: &mut Value, word: Word<'_>, words: &mut Words<'_>, names: &Names) -> Result<(), String> {
    let spec = &mut value["spec"];
    match word {
        Word::Alone("on") => spec["nodeName"] = json!(words.value("on")?),
        Word::Pair("role", role) => mark(value, "annotation", ("volcano.sh/task-spec", role)),
        Word::Pair("preemptable", yes) => mark(value, "annotation", ("volcano.sh/preemptable", yes)),
        Word::Pair("preemption", policy) => spec["preemptionPolicy"] = json!(policy),
        Word::Pair("scheduler", scheduler) => spec["schedulerName"] = json!(scheduler),
        Word::Pair("started", seconds) => {
            value["status"]["startTime"] = json!(moment(integer(seconds)?).to_string());
        }
        Word::Pair("nominated", node) => value["status"]["nominatedNodeName"] = json!(node),
        Word::Pair("priority", text) => match text.parse::<i64>() {
            Ok(number) => spec["priority"] = json!(number),
            Err(_) => {
                let number = names.priority_classes.get(text);
                spec["priority"] = json!(number.ok_or_else(|| format!("no priorityclass `{text}` above"))?);
                spec["priorityClassName"] = json!(text);
            }
        },
        Word::Alone("gated") => push(&mut spec["schedulingGates"], json!({"name": "example.com/wait"})),
        Word::Pair("gated", gate) => push(&mut spec["schedulingGates"], json!({"name": gate})),
        Word::Alone("selector") => {
            let (key, text) = words.pair("selector")?;
            spec["nodeSelector"][key] = json!(text);
        }
        Word::Alone("nodeaffinity") => {
            let (key, values) = words.pair("nodeaffinity")?;
            let values: Vec<&str> = values.split('|').collect();
            let term = json!({"matchExpressions": [{"key": key, "operator": "In", "values": values}]});
            let required = "requiredDuringSchedulingIgnoredDuringExecution";
            push(
                &mut spec["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"],
                term,
            );
        }
        Word::Alone("prefers") => {
            let (key, rest) = words.pair("prefers")?;
            let (text, weight) = rest
                .rsplit_once(':')
                .ok_or_else(|| format!("`{rest}` has no weight"))?;
            let term = json!({"matchExpressions": [{"key": key, "operator": "In", "values": [text]}]});
            let term = json!({"weight": integer(weight)?, "preference": term});
            push(
                &mut spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"],
                term,
            );
        }
        Word::Alone("toleration") => push(&mut spec["tolerations"], toleration(words.value("toleration")?)),
        Word::Alone("port") => {
            let text = words.value("port")?;
            let (port, protocol) = text.split_once('/').unwrap_or((text, "TCP"));
            let port = integer(port)?;
            let port = json!({"containerPort": port, "hostPort": port, "protocol": protocol});
            push(&mut spec["containers"][0]["ports"], port);
        }
        Word::Alone(key @ ("affinity" | "antiaffinity")) => {
            let term = pod_term(words.value(key)?)?;
            let kind = if key == "affinity" {
                "podAffinity"
            } else {
                "podAntiAffinity"
            };
            push(
                &mut spec["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"],
                term,
            );
        }
        Word::Alone("spread") => {
            let text = words.value("spread")?;
            let (term, skew) = text
                .rsplit_once(':')
                .ok_or_else(|| format!("`{text}` has no skew"))?;
            let mut term = pod_term(term)?;
            term["maxSkew"] = json!(integer(skew)?);
            term["whenUnsatisfiable"] = json!("DoNotSchedule");
            push(&mut spec["topologySpreadConstraints"], term);
        }
        Word::Alone("claim") => {
            let claim = words.value("claim")?;
            let volume = json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
            push(&mut spec["volumes"], volume);
        }
        Word::Alone(key @ ("label" | "annotation")) => mark(value, key, words.pair(key)?),
        Word::Pair(key, _) | Word::Alone(key) => return Err(unknown("pod", key)),
    }
    Ok(())
}

/// `K=V@TOPOLOGYKEY`.
fn pod_term(text: &str) -> Result<Value, String> {
    let (pair, topology) = text
        .split_once('@')
        .ok_or_else(|| format!("`{text}` has no `@TOPOLOGYKEY`"))?;
    let (key, value) = pair
        .split_once('=')
        .ok_or_else(|| format!("`{pair}` has no `=`"))?;
    Ok(json!({"labelSelector": {"matchLabels": {key: value}}, "topologyKey": topology}))
}

fn raw(text: &str) -> Result<Object, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let text_at = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let (kind, metadata) = (text_at(&value["kind"]), &value["metadata"]);
    let (namespace, name) = (text_at(&metadata["namespace"]), text_at(&metadata["name"]));
    if kind.is_empty() || name.is_empty() {
        return Err("an object needs a `kind` and a `metadata.name`".to_owned());
    }
    Ok(Object {
        kind,
        namespace,
        name,
        value,
    })
}

fn happening(kind: &str, words: &[String], names: &Names) -> Result<Delta, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let pod = |text| names.pod_key(text);
    match (kind, words.as_slice()) {
        ("gone", ["pod", text]) => pod(text).map(|(namespace, name)| Delta::PodGone { namespace, name }),
        ("gone", ["node", name]) => Ok(Delta::NodeGone {
            name: (*name).to_owned(),
        }),
        ("gone", ["queue", name]) => Ok(Delta::QueueGone {
            name: (*name).to_owned(),
        }),
        ("gone", ["group", name]) => {
            let namespace = names.namespace_of(name)?.to_owned();
            Ok(Delta::PodGroupGone {
                namespace,
                name: (*name).to_owned(),
            })
        }
        ("bindfailed", [text]) => pod(text).map(|(namespace, name)| Delta::BindFailed {
            namespace,
            name,
            uid: String::new(),
        }),
        ("evictfailed", [text]) => pod(text).map(|(namespace, name)| Delta::EvictFailed {
            namespace,
            name,
            uid: String::new(),
        }),
        _ => Err(format!("`{kind} {}` is no such event", words.join(" "))),
    }
}

impl Object {
    /// The change that this object is to an engine.
    pub fn delta(&self) -> Result<Delta, String> {
        fn read<T: for<'a> serde::Deserialize<'a>>(value: &Value) -> Result<T, String> {
            serde_json::from_value(value.clone()).map_err(|error| error.to_string())
        }
        let value = &self.value;
        Ok(match self.kind.as_str() {
            "Pod" => Delta::Pod(Box::new(read(value)?)),
            "Node" => Delta::Node(Box::new(read(value)?)),
            "PodGroup" => Delta::PodGroup(Box::new(read(value)?)),
            "Queue" => Delta::Queue(Box::new(read(value)?)),
            "PriorityClass" => Delta::PriorityClass(read(value)?),
            "Namespace" => Delta::Namespace(read(value)?),
            "PersistentVolumeClaim" => Delta::Claim(Box::new(read(value)?)),
            "PersistentVolume" => Delta::Volume(Box::new(read(value)?)),
            "StorageClass" => Delta::StorageClass(Box::new(read(value)?)),
            "CSINode" => Delta::CsiNode(Box::new(read(value)?)),
            "ResourceQuota" => Delta::ResourceQuota(Box::new(read(value)?)),
            "PodDisruptionBudget" => Delta::DisruptionBudget(Box::new(read(value)?)),
            "HyperNode" => Delta::HyperNode(Box::new(read(value)?)),
            other => return Err(format!("objects of kind `{other}` do not go into an engine")),
        })
    }
}
