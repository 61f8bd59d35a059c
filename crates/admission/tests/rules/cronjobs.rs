//! Rules for CronJobs.

use serde_json::{Value, json};

use super::world::{World, refusal};

const PATH: &str = "/cronjobs/validate";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn cron_job(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

fn check(cases: &[(&str, Value, &str)]) {
    for (name, spec, expected) in cases {
        let object = cron_job("c", spec.clone());
        let (new, trimmed) = (World::new().refusal(PATH, &object), expected.trim());
        assert_eq!(new, trimmed, "{name}, new");
        let changed = World::new().update(PATH, &cron_job("c", json!({})), &object);
        assert_eq!(refusal(&changed), *expected, "{name}, changed");
    }
}

#[test]
fn schedules() {
    check(&[
        ("a good one", json!({"schedule": "*/5 * * * *"}), ""),
        ("a word", json!({"schedule": "@daily"}), ""),
        ("none", json!({}), " schedule is required, but got empty"),
        (
            "an empty one",
            json!({"schedule": ""}),
            " schedule is required, but got empty",
        ),
        (
            "no schedule",
            json!({"schedule": "now and then"}),
            "schedule is not a valid cron expression",
        ),
        (
            "a zone in it",
            json!({"schedule": "TZ=UTC * * * * *"}),
            " schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field",
        ),
        (
            "a zone in no schedule: no more is said",
            json!({"schedule": "CRON_TZ=UTC soon"}),
            " schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field",
        ),
    ]);
}

#[test]
fn time_zones() {
    let zone = |zone: &str| json!({"schedule": "@daily", "timeZone": zone});
    let unknown = " unknown timeZone invalid timeZone";
    let local = " timeZone can't be Local, and must be defined in https://www.iana.org/time-zones";
    check(&[
        ("a good one", zone("Europe/Berlin"), ""),
        ("none", json!({"schedule": "@daily", "timeZone": null}), ""),
        (
            "an empty one",
            zone(""),
            " timeZone must be nil or non-empty string, got empty string",
        ),
        ("a way out", zone("../etc/passwd"), unknown),
        ("a dot", zone("./UTC"), unknown),
        ("an empty part", zone("Europe//Berlin"), unknown),
        ("an option", zone("-x"), unknown),
        ("a long part", zone("Europe/Berlinnnnnnnnnn"), unknown),
        ("a blank", zone("Europe/New Berlin"), unknown),
        ("another letter", zone("UTC!"), unknown),
        (
            "each part is told",
            zone("../../UTC"),
            " unknown timeZone unknown timeZone invalid timeZone",
        ),
        ("here", zone("Local"), local),
        ("here, shouted", zone("LOCAL"), local),
        ("nowhere", zone("Europe/Atlantis"), " invalid timeZone"),
        (
            "nothing is right",
            json!({"schedule": "", "timeZone": "Europe/At lantis"}),
            " schedule is required, but got empty unknown timeZone invalid timeZone",
        ),
    ]);
}

#[test]
fn names() {
    let refused = |name: &str, schedule: &str| {
        World::new().refusal(PATH, &cron_job(name, json!({"schedule": schedule})))
    };
    let long = "a".repeat(53);
    let too_long =
        "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)";
    assert_eq!(refused(&long[..52], "@daily"), "");
    assert_eq!(refused(&long, "@daily"), too_long);
    assert_eq!(
        refused("a_", "@daily"),
        format!("invalid cronJob name \"a_\": {QUALIFIED}")
    );
    assert_eq!(
        refused("", "@daily"),
        format!("invalid cronJob name \"\": name part must be non-empty; {QUALIFIED}")
    );
    assert_eq!(
        refused(&long, ""),
        format!("schedule is required, but got empty; {too_long}")
    );
}

#[test]
fn the_template_is_judged_when_a_job_is_made_of_it() {
    let object = cron_job(
        "c",
        json!({"schedule": "@daily", "jobTemplate": {"spec": {"tasks": [], "queue": "nope"}}}),
    );
    assert_eq!(World::new().refusal(PATH, &object), "");
}

#[test]
fn durations_in_the_template_can_be_read() {
    let of = |timeout: &str| {
        let policies = json!([{"event": "PodFailed", "action": "RestartJob", "timeout": timeout}]);
        let spec = json!({"tasks": [{"policies": policies}]});
        cron_job("c", json!({"schedule": "@daily", "jobTemplate": {"spec": spec}}))
    };
    let fault = "object.spec.jobTemplate.spec.tasks[0].policies[0].timeout: time: unknown unit \"x\" in duration \"10x\"";
    assert_eq!(World::new().refusal(PATH, &of("10s")), "");
    assert_eq!(World::new().refusal(PATH, &of("10x")), fault);
    assert_eq!(refusal(&World::new().update(PATH, &of("10s"), &of("10x"))), fault);
    assert_eq!(refusal(&World::new().update(PATH, &of("10x"), &of("10x"))), "");
}
