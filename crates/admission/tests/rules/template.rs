//! Rules for the pods of a task.

use serde_json::{Value, json};

use super::world::{World, job, with};

const PATH: &str = "/jobs/validate";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Sets a member of the pod's spec and compares all errors, each below `template.spec`.
fn check(cases: &[(&str, &str, Value, &[&str])]) {
    for (name, pointer, value, expected) in cases {
        let object = with(
            job(),
            &format!("/spec/tasks/0/template/spec{pointer}"),
            value.clone(),
        );
        let errors: String = expected
            .iter()
            .map(|error| format!("template.spec.{error}. "))
            .collect();
        let message = if errors.is_empty() {
            errors
        } else {
            format!("spec.task[0].{errors}")
        };
        assert_eq!(World::new().refusal(PATH, &object), message.trim(), "{name}");
    }
}

/// Sets a member of the first container; errors are below `template.spec.containers[0]`.
fn check_container(cases: &[(&str, &str, Value, &[&str])]) {
    for (name, pointer, value, expected) in cases {
        let errors: Vec<String> = expected
            .iter()
            .map(|error| format!("containers[0].{error}"))
            .collect();
        let errors: Vec<&str> = errors.iter().map(String::as_str).collect();
        check(&[(name, &format!("/containers/0{pointer}"), value.clone(), &errors)]);
    }
}

#[test]
fn containers_have_names_and_images() {
    let label = format!("name: Invalid value: \"C\": {LABEL}");
    check(&[
        (
            "no containers",
            "/containers",
            json!([]),
            &["containers: Required value"],
        ),
        (
            "nothing",
            "/containers",
            Value::Null,
            &["containers: Required value"],
        ),
        (
            "an empty container",
            "/containers",
            json!([{}]),
            &[
                "containers[0].name: Required value",
                "containers[0].image: Required value",
            ],
        ),
        (
            "a name twice",
            "/containers",
            json!([{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]),
            &["containers[1].name: Duplicate value: \"a\""],
        ),
        (
            "a name of an init container too",
            "/initContainers",
            json!([{"name": "c", "image": "i"}]),
            &["initContainers[0].name: Duplicate value: \"c\""],
        ),
        (
            "debugging",
            "/ephemeralContainers",
            json!([{"name": "d"}]),
            &["ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"],
        ),
    ]);
    check_container(&[
        ("a name in capitals", "/name", json!("C"), &[&label]),
        (
            "a name with dots",
            "/name",
            json!("a.b"),
            &["name: Invalid value: \"a.b\": must not contain dots"],
        ),
        ("no image", "/image", json!(""), &["image: Required value"]),
        (
            "pulling",
            "/imagePullPolicy",
            json!("Sometimes"),
            &[
                "imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
            ],
        ),
        (
            "last words",
            "/terminationMessagePolicy",
            json!("Mail"),
            &[
                "terminationMessagePolicy: Unsupported value: \"Mail\": supported values: \"File\", \"FallbackToLogsOnError\"",
            ],
        ),
        (
            "restarts",
            "/restartPolicy",
            json!("Maybe"),
            &[
                "restartPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"Never\", \"OnFailure\"",
            ],
        ),
    ]);
}

#[test]
fn init_containers_end() {
    let with_probe = |policy: Value| json!([{"name": "a", "image": "i", "restartPolicy": policy, "livenessProbe": {}, "lifecycle": {}}]);
    check(&[
        (
            "one that is looked after",
            "/initContainers",
            with_probe(Value::Null),
            &[
                "initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
                "initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
            ],
        ),
        ("a sidecar", "/initContainers", with_probe(json!("Always")), &[]),
    ]);
}

#[test]
fn ports() {
    check_container(&[
        (
            "good ones",
            "/ports",
            json!([{"containerPort": 80}, {"name": "http", "containerPort": 81, "protocol": "UDP"}]),
            &[],
        ),
        (
            "no number",
            "/ports",
            json!([{"name": "http"}]),
            &["ports[0].containerPort: Required value"],
        ),
        (
            "too large",
            "/ports",
            json!([{"containerPort": 65536, "hostPort": -1}]),
            &[
                "ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
                "ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
            ],
        ),
        (
            "names",
            "/ports",
            json!([{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}, {"name": "80", "containerPort": 3}]),
            &[
                "ports[1].name: Duplicate value: \"a\"",
                "ports[2].name: Invalid value: \"80\": must contain at least one letter (a-z)",
            ],
        ),
        (
            "a protocol of nobody",
            "/ports",
            json!([{"containerPort": 1, "protocol": "tcp"}]),
            &["ports[0].protocol: Unsupported value: \"tcp\": supported values: \"SCTP\", \"TCP\", \"UDP\""],
        ),
        (
            "a port of the node twice",
            "/ports",
            json!([{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9, "protocol": "TCP"},
                {"containerPort": 3, "hostPort": 9, "protocol": "UDP"}, {"containerPort": 4, "hostPort": 9, "hostIP": "1.2.3.4"}]),
            &["ports[1].hostPort: Duplicate value: \"TCP//9\""],
        ),
    ]);
    let on_host = with(job(), "/spec/tasks/0/template/spec/hostNetwork", json!(true));
    let ports = json!([{"containerPort": 80, "hostPort": 81}, {"containerPort": 82}, {"containerPort": 83, "hostPort": 83}]);
    let on_host = with(on_host, "/spec/tasks/0/template/spec/containers/0/ports", ports);
    assert_eq!(
        World::new().refusal(PATH, &on_host),
        "spec.task[0].template.spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true."
    );
}

#[test]
fn variables() {
    check_container(&[(
        "names",
        "/env",
        json!([{"name": "A", "value": "1"}, {"value": "2"}, {"name": "a=b"}]),
        &[
            "env[1].name: Required value",
            "env[2].name: Invalid value: \"a=b\": a valid environment variable name must consist only of printable ASCII characters other than '='",
        ],
    )]);
}

#[test]
fn volumes_and_their_mounts() {
    let label = format!("volumes[0].name: Invalid value: \"V\": {LABEL}");
    check(&[
        (
            "good ones",
            "/volumes",
            json!([{"name": "a"}, {"name": "b", "emptyDir": {}}, {"name": "c", "csi": {}}]),
            &[],
        ),
        (
            "no name",
            "/volumes",
            json!([{"emptyDir": {}}]),
            &["volumes[0].name: Required value"],
        ),
        (
            "a name in capitals",
            "/volumes",
            json!([{"name": "V"}]),
            &[&label],
        ),
        (
            "a name twice",
            "/volumes",
            json!([{"name": "a"}, {"name": "a"}]),
            &["volumes[1].name: Duplicate value: \"a\""],
        ),
        (
            "two in one",
            "/volumes",
            json!([{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}, "secret": {}}]),
            &[
                "volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
                "volumes[0].secret: Forbidden: may not specify more than 1 volume type",
            ],
        ),
        (
            "nothing behind them",
            "/volumes",
            json!([{"name": "a", "hostPath": {}}, {"name": "b", "configMap": {}}, {"name": "c", "secret": {}},
                {"name": "d", "persistentVolumeClaim": {}}, {"name": "e", "nfs": {}}]),
            &[
                "volumes[0].hostPath.path: Required value",
                "volumes[1].configMap.name: Required value",
                "volumes[2].secret.secretName: Required value",
                "volumes[3].persistentVolumeClaim.claimName: Required value",
                "volumes[4].nfs.server: Required value",
                "volumes[4].nfs.path: Required value",
                "volumes[4].nfs.path: Invalid value: \"\": must be an absolute path",
            ],
        ),
        (
            "odd things behind them",
            "/volumes",
            json!([{"name": "a", "hostPath": {"path": "/x/../y", "type": "Door"}},
                {"name": "b", "configMap": {"name": "m", "defaultMode": 512}}]),
            &[
                "volumes[0].hostPath.path: Invalid value: \"/x/../y\": must not contain '..'",
                "volumes[0].hostPath.type: Unsupported value: \"Door\": supported values: \"\", \"BlockDevice\", \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
                "volumes[1].configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
            ],
        ),
    ]);
    check_container(&[
        (
            "a volume of nobody",
            "/volumeMounts",
            json!([{"name": "v", "mountPath": "/a"}]),
            &["volumeMounts[0].name: Not found: \"v\""],
        ),
        (
            "a device of nobody",
            "/volumeDevices",
            json!([{"name": "v", "devicePath": "/a"}]),
            &["volumeDevices[0].name: Not found: \"v\""],
        ),
    ]);
    let mounts = |mounts: Value, devices: Value| {
        let volumes = json!([{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "c"}}]);
        let job = with(job(), "/spec/tasks/0/template/spec/volumes", volumes);
        let job = with(
            job,
            "/spec/tasks/0/template/spec/containers/0/volumeMounts",
            mounts,
        );
        let job = with(
            job,
            "/spec/tasks/0/template/spec/containers/0/volumeDevices",
            devices,
        );
        World::new()
            .refusal(PATH, &job)
            .replace("template.spec.containers[0].", "")
    };
    assert_eq!(
        mounts(
            json!([{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b", "subPath": "x/y"}]),
            json!([])
        ),
        ""
    );
    assert_eq!(
        mounts(
            json!([{"name": "v"}, {"mountPath": "/b"}, {"name": "v", "mountPath": "/b", "subPath": "/x/..", "subPathExpr": "y"}]),
            json!([])
        ),
        "spec.task[0].volumeMounts[0].mountPath: Required value. volumeMounts[1].name: Required value. volumeMounts[1].name: Not found: \"\". volumeMounts[2].mountPath: Invalid value: \"/b\": must be unique. volumeMounts.subPath: Invalid value: \"/x/..\": must be a relative path. volumeMounts.subPath: Invalid value: \"/x/..\": must not contain '..'. volumeMounts[2].subPathExpr: Invalid value: \"y\": subPathExpr and subPath are mutually exclusive."
    );
    assert_eq!(
        mounts(json!([]), json!([{"name": "p", "devicePath": "/dev/x"}])),
        ""
    );
    assert_eq!(
        mounts(
            json!([{"name": "p", "mountPath": "/a"}]),
            json!([{"name": "v", "devicePath": "/dev/x"}, {"name": "p", "devicePath": "/dev/x"}, {}])
        ),
        "spec.task[0].volumeMounts[0].name: Invalid value: \"p\": must not already exist in volumeDevices. volumeDevices[0].name: Invalid value: \"v\": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode. volumeDevices[1].devicePath: Invalid value: \"/dev/x\": must be unique. volumeDevices[1].name: Invalid value: \"p\": must not already exist in volumeMounts. volumeDevices[2].name: Required value. volumeDevices[2].name: Not found: \"\". volumeDevices[2].devicePath: Required value."
    );
    assert_eq!(
        mounts(
            json!([{"name": "v", "mountPath": "/dev/x"}]),
            json!([{"name": "p", "devicePath": "/dev/x"}, {"name": "p", "devicePath": "/dev/../y"}])
        ),
        "spec.task[0].volumeMounts[0].mountPath: Invalid value: \"/dev/x\": must not already exist as a path in volumeDevices. volumeDevices[0].devicePath: Invalid value: \"/dev/x\": must not already exist as a path in volumeMounts. volumeDevices[1].name: Invalid value: \"p\": must be unique. volumeDevices[1].devicePath: Invalid value: \"/dev/../y\": can not contain backsteps ('..')."
    );
}

#[test]
fn resources() {
    check_container(&[
        (
            "good ones",
            "/resources",
            json!({"requests": {"cpu": "100m"}, "limits": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}}),
            &[],
        ),
        (
            "a batch resource",
            "/resources",
            json!({"requests": {"kubernetes.io/batch-cpu": "1500"}}),
            &[],
        ),
        (
            "a name of nobody",
            "/resources",
            json!({"limits": {"gpu": 1}}),
            &[
                "resources.limits[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified",
                "resources.limits[gpu]: Invalid value: \"gpu\": must be a standard resource for containers",
            ],
        ),
        (
            "one that is for quotas only",
            "/resources",
            json!({"limits": {"pods": 1}}),
            &["resources.limits[pods]: Invalid value: \"pods\": must be a standard resource for containers"],
        ),
        (
            "one that quotas could not name",
            "/resources",
            json!({"limits": {"requests.a.com/x": 1}}),
            &[
                "resources.limits[requests.a.com/x]: Invalid value: \"requests.a.com/x\": doesn't follow extended resource name standard",
            ],
        ),
        (
            "less than nothing",
            "/resources",
            json!({"limits": {"cpu": "-1"}}),
            &["resources.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"],
        ),
        (
            "half a card",
            "/resources",
            json!({"limits": {"nvidia.com/gpu": "500m"}}),
            &["resources.limits[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer"],
        ),
        (
            "more than the limit",
            "/resources",
            json!({"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}),
            &["resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1500m"],
        ),
        (
            "another number of cards",
            "/resources",
            json!({"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}),
            &["resources.requests: Invalid value: \"1\": must be equal to nvidia.com/gpu limit of 2"],
        ),
        (
            "cards without a limit",
            "/resources",
            json!({"requests": {"nvidia.com/gpu": 1}}),
            &["resources.limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            "huge pages alone",
            "/resources",
            json!({"limits": {"hugepages-2Mi": "4Mi"}}),
            &["resources: Forbidden: HugePages require cpu or memory"],
        ),
        (
            "a part of a huge page",
            "/resources",
            json!({"limits": {"hugepages-2Mi": "3Mi", "memory": "1Gi"}}),
            &[
                "resources.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
            ],
        ),
        (
            "huge pages",
            "/resources",
            json!({"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"}}),
            &[],
        ),
    ]);
}

#[test]
fn the_pod_as_a_whole() {
    let name = |field: &str| format!("{field}: Invalid value: \"A_\": {SUBDOMAIN}");
    let label = |field: &str| format!("{field}: Invalid value: \"A_\": {LABEL}");
    let selector = [
        format!("nodeSelector: Invalid value: \"-a\": {QUALIFIED}"),
        format!("nodeSelector: Invalid value: \"-b\": {LABEL_VALUE}"),
    ];
    check(&[
        (
            "restarts",
            "/restartPolicy",
            json!("Sometimes"),
            &[
                "restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
            ],
        ),
        (
            "names of others",
            "/dnsPolicy",
            json!("Ask"),
            &[
                "dnsPolicy: Unsupported value: \"Ask\": supported values: \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"",
            ],
        ),
        (
            "nodes",
            "/nodeSelector",
            json!({"-a": "-b"}),
            &[&selector[0], &selector[1]],
        ),
        (
            "gates",
            "/schedulingGates",
            json!([{"name": "a"}, {"name": "a"}]),
            &["schedulingGates[1]: Duplicate value: \"a\""],
        ),
        (
            "account",
            "/serviceAccountName",
            json!("A_"),
            &[&name("serviceAccountName")],
        ),
        ("node", "/nodeName", json!("A_"), &[&name("nodeName")]),
        (
            "priority",
            "/priorityClassName",
            json!("A_"),
            &[&name("priorityClassName")],
        ),
        ("host", "/hostname", json!("A_"), &[&label("hostname")]),
        ("domain", "/subdomain", json!("A_"), &[&label("subdomain")]),
        (
            "deadline",
            "/activeDeadlineSeconds",
            json!(0),
            &["activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        ),
    ]);
}

#[test]
fn tolerations() {
    let value = format!("tolerations[0].operator: Invalid value: \"-\": {LABEL_VALUE}");
    check(&[
        (
            "good ones",
            "/tolerations",
            json!([{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"},
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}, {"key": "a", "operator": "Gt", "value": "5"}]),
            &[],
        ),
        (
            "no key",
            "/tolerations",
            json!([{"value": "a"}]),
            &[
                "tolerations[0].operator: Invalid value: \"\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            ],
        ),
        (
            "seconds of another effect",
            "/tolerations",
            json!([{"key": "a", "tolerationSeconds": 1}]),
            &[
                "tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
            ],
        ),
        (
            "a value of no label",
            "/tolerations",
            json!([{"key": "a", "value": "-"}]),
            &[&value],
        ),
        (
            "a value for everything",
            "/tolerations",
            json!([{"key": "a", "operator": "Exists", "value": "b"}]),
            &[
                "tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
            ],
        ),
        (
            "no number",
            "/tolerations",
            json!([{"key": "a", "operator": "Lt", "value": "b"}, {"key": "a", "operator": "Gt", "value": "05"}]),
            &[
                "tolerations[0].value: Invalid value: \"b\": must be a valid decimal integer in canonical form",
                "tolerations[0].value: Invalid value: \"b\": strconv.ParseInt: parsing \"b\": invalid syntax",
                "tolerations[1].value: Invalid value: \"05\": must be a valid decimal integer in canonical form",
            ],
        ),
        (
            "words of nobody",
            "/tolerations",
            json!([{"key": "a", "operator": "Near", "effect": "Shy"}]),
            &[
                "tolerations[0].operator: Unsupported value: \"Near\": supported values: \"Equal\", \"Exists\"",
                "tolerations[0].effect: Unsupported value: \"Shy\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
            ],
        ),
    ]);
}

#[test]
fn labels_annotations_and_the_name() {
    let refused = |pointer: &str, value: Value| World::new().refusal(PATH, &with(job(), pointer, value));
    assert_eq!(
        refused(
            "/spec/tasks/0/template/metadata",
            json!({"labels": {"a": "-"}, "annotations": {"A/B c": "x"}})
        ),
        format!(
            "spec.task[0].template.labels: Invalid value: \"-\": {LABEL_VALUE}. template.annotations: Invalid value: \"A/B c\": {QUALIFIED}."
        )
    );
    assert_eq!(
        refused(
            "/spec/tasks/0/template/metadata/annotations",
            json!({"a": "x".repeat(256 * 1024)})
        ),
        "spec.task[0].template.annotations: Too long: may not be more than 262144 bytes."
    );
    assert_eq!(
        refused(
            "/spec/tasks/0/template/metadata",
            json!({"annotations": {"Example.com/A": "x"}, "creationTimestamp": null})
        ),
        ""
    );
    assert_eq!(
        refused("/spec/tasks/0/name", json!("T")),
        format!("spec.task[0].metadata.name: Invalid value: \"T\": {SUBDOMAIN}.")
    );
    assert_eq!(
        refused("/spec/tasks/0/name", json!("")),
        "spec.task[0].metadata.name: Required value: name or generateName is required."
    );
}

#[test]
fn a_template_of_the_wrong_form_is_refused_with_the_place_of_the_fault() {
    let refused = |pointer: &str, value: Value| World::new().refusal(PATH, &with(job(), pointer, value));
    assert_eq!(
        refused("/spec/tasks/0/template/spec/containers/0/ports", json!("http")),
        "spec.task[0].template.spec.containers[0].ports: invalid type: string \"http\", expected a sequence."
    );
    assert_eq!(
        refused(
            "/spec/tasks/0/template/spec/containers/0/resources",
            json!({"limits": {"cpu": "lots"}})
        ),
        "spec.task[0].template.spec.containers[0].resources.limits.cpu: quantity \"lots\" does not start with a number."
    );
}

#[test]
fn aligned_pods_have_whole_processors_in_each_container() {
    let aligned = |policy: &str, containers: Value, init: Value| {
        let job = with(job(), "/spec/tasks/0/topologyPolicy", json!(policy));
        let named = |list: &Value, prefix: &str| -> Value {
            let resources = list.as_array().expect("a list").iter().enumerate();
            resources
                .map(|(index, resources)| json!({"name": format!("{prefix}{index}"), "image": "i", "resources": resources}))
                .collect()
        };
        let job = with(
            job,
            "/spec/tasks/0/template/spec/containers",
            named(&containers, "c"),
        );
        let job = with(
            job,
            "/spec/tasks/0/template/spec/initContainers",
            named(&init, "i"),
        );
        World::new().refusal(PATH, &job)
    };
    let whole = json!({"requests": {"cpu": 2}});
    let half = json!({"requests": {"cpu": "500m"}, "limits": {"cpu": 1}});
    let limit = json!({"limits": {"cpu": "3"}});
    let fault = |k: usize| format!("the cpu request isn't an integer in spec.task[0] container[{k}].");
    assert_eq!(aligned("best-effort", json!([whole, limit]), json!([whole])), "");
    assert_eq!(aligned("none", json!([half]), json!([])), "");
    assert_eq!(aligned("", json!([half]), json!([])), "");
    assert_eq!(aligned("restricted", json!([whole, half]), json!([])), fault(1));
    assert_eq!(aligned("single-numa-node", json!([{}]), json!([])), fault(0));
    assert_eq!(aligned("best-effort", json!([whole]), json!([half])), fault(1));
    assert_eq!(
        aligned(
            "best-effort",
            json!([{"requests": {"memory": 1}, "limits": {"cpu": 1}}]),
            json!([])
        ),
        fault(0)
    );
}
