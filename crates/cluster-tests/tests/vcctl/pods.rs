//! `vcctl pod` and `vcctl podgroup`.

use crate::transcript::Transcript;
use crate::world;
use insta::assert_snapshot;

#[tokio::test(flavor = "multi_thread")]
async fn pods_and_podgroups_are_shown() {
    let stage = world::set().await;
    let mut script = Transcript::of(&stage);
    script.run("vcctl pod list -n NS");
    script.run("vcctl pod list --all-namespaces --job train");
    script.run("vcctl pod list -n NS -q research");
    script.run("vcctl pod list -n NS -q research -o name");
    script.run("vcctl pod list -n NS -j train -q research");
    script.run("vcctl pod list -n NS -j train -q default");
    script.run("vcctl pod list -n NS -j nobody");
    script.run("vcctl pod list -n NS -o wide");
    script.run("vcctl podgroup list -n NS");
    script.run("vcctl podgroup list -A -q research -o wide");
    script.run("vcctl podgroup view -n NS -N waiting");
    script.run("vcctl podgroup view -n NS -N done -o yaml");
    script.run("vcctl podgroup view -n NS");
    script.run("vcctl podgroup list -n nowhere");
    assert_snapshot!(script.text());
}
