use super::*;
use clap::{Args as _, FromArgMatches as _};

fn parse(flags: &[&str]) -> ManifestsArgs {
    let command = ManifestsArgs::augment_args(clap::Command::new("manifests").no_binary_name(true));
    let matches = command.try_get_matches_from(flags).unwrap();
    ManifestsArgs::from_arg_matches(&matches).unwrap()
}

fn rendered(flags: &[&str]) -> String {
    render(&parse(flags)).unwrap()
}

fn objects(flags: &[&str]) -> Vec<Value> {
    serde_saphyr::from_multiple(&rendered(flags)).unwrap()
}

fn refused(flags: &[&str]) -> String {
    render(&parse(flags)).unwrap_err().to_string()
}

/// Without the CRDs, whose own tests are elsewhere.
const WITHOUT_CRDS: &str = "--only=namespace,scheduler,controllers,admission,webhooks,users";

#[test]
fn what_is_installed_by_default() {
    insta::assert_snapshot!(rendered(&[WITHOUT_CRDS]));
}

#[test]
fn what_people_change() {
    insta::assert_snapshot!(rendered(&[
        "--only=scheduler,admission,webhooks",
        "--namespace=batch",
        "--release=vc",
        "--image-registry=registry.example:5000",
        "--image-tag=v1",
        "--image-pull-policy=IfNotPresent",
        "--image-pull-secret=regcred",
        "--scheduler-name=batch",
        "--leader-elect=false",
        "--scheduler-replicas=2",
        "--scheduler-log-level=5",
        "--enabled-admission=/podgroups/mutate,/pods/mutate,/pods/validate",
        "--admission-port=9443",
        "--admission-secret-name=certificate",
        "--webhook-namespace-selector=team",
        "--webhook-namespace-selector=tier!=web,edge",
    ]));
}

#[test]
fn everything_is_printed_once_and_reads_back() {
    let all = objects(&[]);
    let key = |object: &Value| {
        let metadata = &object["metadata"];
        format!(
            "{} {} {}",
            object["kind"], metadata["namespace"], metadata["name"]
        )
    };
    let keys: BTreeSet<_> = all.iter().map(key).collect();
    assert_eq!(keys.len(), all.len());
    let parts: Vec<_> = Group::ALL
        .iter()
        .flat_map(|group| group.objects(&values(&parse(&[])).unwrap()))
        .collect();
    assert_eq!(all, parts, "what is printed is what was made, in that order");
    for crd in volcano_api::crd::all() {
        assert!(all.contains(&crd));
    }
    assert_eq!(rendered(&[]), rendered(&[]));
}

/// Nobody may do anything to everything, and secrets are for those who need them.
#[test]
fn roles_are_narrow() {
    for object in objects(&[WITHOUT_CRDS]) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        for rule in object["rules"].as_array().into_iter().flatten() {
            let text = rule.to_string();
            assert!(!text.contains('*'), "{name}: {text}");
            let resources = rule["resources"].as_array().unwrap();
            if resources.contains(&json!("secrets")) && object["kind"] == "ClusterRole" {
                assert_eq!(name, "volcano-controllers", "{text}");
            }
            let verbs = rule["verbs"].as_array().unwrap();
            for verb in ["escalate", "bind", "impersonate", "deletecollection"] {
                assert!(!verbs.contains(&json!(verb)), "{name}: {text}");
            }
        }
    }
}

#[test]
fn namespaces_are_read_only_where_somebody_asks() {
    let reads = |flags: &[&str]| rendered(flags).contains("namespaces");
    assert!(!reads(&["--only=admission"]));
    assert!(reads(&[
        "--only=admission",
        "--enabled-admission=/podgroups/mutate"
    ]));
}

#[test]
fn events_are_written_only_where_pods_are_judged() {
    let writes = |flags: &[&str]| {
        let all = objects(flags);
        let mut rules = all
            .iter()
            .filter_map(|object| object["rules"].as_array())
            .flatten();
        rules.any(|rule| rule["resources"] == json!(["events"]))
    };
    assert!(!writes(&["--only=admission"]));
    assert!(!writes(&["--only=admission", "--enabled-admission=/pods/mutate"]));
    assert!(writes(&[
        "--only=admission",
        "--enabled-admission=/pods/validate"
    ]));
}

#[test]
fn a_secret_may_have_dots_in_its_name() {
    let secret = |name: &str| {
        [
            "--only=admission".to_owned(),
            format!("--admission-secret-name={name}"),
        ]
    };
    let flags = secret("a.b-c.d");
    let printed = rendered(&[&flags[0], &flags[1]]);
    assert!(printed.contains("--admission-secret-name=a.b-c.d"), "{printed}");
    let long = "a".repeat(254);
    for wrong in ["a..b", ".a", "a.", "a.-b", "a-.b", "A", "", &long] {
        let flags = secret(wrong);
        let message = refused(&[&flags[0], &flags[1]]);
        assert!(
            message.starts_with(&format!("error: --admission-secret-name {wrong:?}: not a name")),
            "{message}"
        );
    }
    assert!(refused(&["--release=a.b"]).contains("not a name"));
}

#[test]
fn configurations_of_files_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let good = file("good", "actions: allocate\n");
    let printed = rendered(&["--only=scheduler", &format!("--scheduler-conf={good}")]);
    assert!(printed.contains("actions: allocate"), "{printed}");
    let bad = file("bad", "actions: alocate\n");
    assert!(refused(&[&format!("--scheduler-conf={bad}")]).contains("alocate"));
    assert!(refused(&[&format!("--admission-conf={bad}")]).contains("actions"));
    assert!(refused(&["--admission-conf=/nowhere"]).contains("/nowhere: "));
}

#[test]
fn mistakes_are_told() {
    assert_eq!(
        refused(&["--enabled-admission=/nope"]),
        "error: enabled admission /nope not found on the admission registered map"
    );
    assert!(refused(&["--namespace=Big"]).contains("--namespace \"Big\": not a name"));
    assert!(refused(&["--release="]).contains("--release \"\": not a name"));
    assert!(refused(&["--webhook-namespace-selector=="]).contains("no label is named"));
}

#[test]
fn conditions_are_those_of_selectors() {
    for (text, expected) in [
        ("team", json!({"key": "team", "operator": "Exists"})),
        ("!team", json!({"key": "team", "operator": "DoesNotExist"})),
        (
            "team=a, b",
            json!({"key": "team", "operator": "In", "values": ["a", "b"]}),
        ),
        (
            "team!=a",
            json!({"key": "team", "operator": "NotIn", "values": ["a"]}),
        ),
    ] {
        assert_eq!(condition(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn the_default_configurations_are_good() {
    let conf = SchedulerConf::parse(SCHEDULER_CONF, catalog::PLANNED_PLUGINS, catalog::ACTIONS);
    assert_eq!(conf.unwrap().tiers.len(), 2);
    let groups = ResourceGroups::parse(ADMISSION_CONF).unwrap();
    assert_eq!(groups, ResourceGroups::default(), "comments only");
}
