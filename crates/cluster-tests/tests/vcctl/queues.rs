//! `vcctl queue`.

use crate::transcript::Transcript;
use crate::world;
use insta::assert_snapshot;
use volcano_testcluster::objects;

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_made_changed_and_shown() {
    let stage = world::set().await;
    let mut script = Transcript::of(&stage);
    script.run("vcctl queue list");
    script.run("vcctl queue list -o wide");
    script.run("vcctl queue list -o name");
    script.run("vcctl queue get --name research");
    script.run("vcctl queue get -n research -o yaml");
    script.run("vcctl queue get");
    script.run("vcctl queue get -n nowhere");
    script.run("vcctl queue create --name extra --weight 5 --state Closed");
    script.run("vcctl queue create --name extra");
    script.run("vcctl queue create -n heavy -w x");
    script.run("vcctl queue operate -n extra -a update -w 7");
    script.run("vcctl queue get -n extra");
    script.run("vcctl queue operate -n extra -a update");
    script.run("vcctl queue operate -n extra");
    script.run("vcctl queue operate -n extra -a burn");
    script.run("vcctl queue operate -a open");
    script.run("vcctl queue operate -n extra -a close");
    script.run("vcctl queue operate -n extra -a open");
    script.run("vcctl queue operate -n nowhere -a open");
    script.run("vcctl queue delete -n extra");
    script.run("vcctl queue delete -n extra");
    script.run("vcctl queue delete");
    let path = objects::path("bus.volcano.sh/v1alpha1", "default", "commands", "");
    // They belong to a queue that is gone now, and go with it; what is left is not this test's to look at.
    objects::delete(&stage.client, &path).await.unwrap();
    assert_snapshot!(script.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_for_queues_are_in_the_default_namespace() {
    let stage = world::set().await;
    let path = objects::path("bus.volcano.sh/v1alpha1", "default", "commands", "");
    objects::delete(&stage.client, &path).await.unwrap();
    let mut script = Transcript::of(&stage);
    script.run("vcctl queue operate -n retired -a open");
    script.run("vcctl queue operate -n research -a close");
    let mut orders: Vec<String> = objects::list(&stage.client, &path)
        .await
        .unwrap()
        .iter()
        .map(|command| {
            assert_eq!(command["target"], command["metadata"]["ownerReferences"][0]);
            format!("{} {}", command["action"], command["target"]["name"])
        })
        .collect();
    orders.sort();
    assert_eq!(
        orders,
        ["\"CloseQueue\" \"research\"", "\"OpenQueue\" \"retired\""]
    );
    objects::delete(&stage.client, &path).await.unwrap();
}
