//! Lists, as every `list` command shows them: a table, whole objects, or changes as they happen.
//!
//! The width of a column may follow the longest name, so a table is printed when the last page is there. Until then only
//! its cells are kept: ten thousand Jobs take a few megabytes, not what their pod templates take.

use crate::api::{Api, Scope};
use crate::args::ListingArgs;
use crate::failure::Failure;
use crate::live::{Change, Item, Live, Whole};
use crate::output::{Column, Format, NOTHING, ObjectWriter, Out, Table, tell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

/// What stands in the state of something that was deleted.
const DELETED: &str = "Deleted";

/// The cells of something that was deleted; after them where there is no column for it.
pub fn deleted(mut row: Vec<String>, state: Option<usize>) -> Vec<String> {
    match state.and_then(|state| row.get_mut(state)) {
        Some(cell) => DELETED.clone_into(cell),
        None => row.push(DELETED.to_owned()),
    }
    row
}

/// A list to be shown.
pub struct Listing<'a, T> {
    /// Which objects are asked for.
    pub scope: Scope,
    /// How they are shown.
    pub how: &'a ListingArgs,
    /// The columns of the table.
    pub columns: Vec<Column>,
    /// Which column says how an object is, for those that are deleted.
    pub state: Option<usize>,
    /// So many of the first columns put the rows in order; 0 leaves them in that of the server, which takes the `/` after
    /// a namespace for a part of it: `team-a` comes before `team`.
    pub order: usize,
    /// Whether an object is among those that are wanted.
    pub keep: &'a dyn Fn(&T) -> bool,
    /// Its cells.
    pub row: &'a dyn Fn(&T) -> Vec<String>,
    /// Whether the header is printed when objects are there, of which none is wanted.
    pub bare_header: bool,
}

impl<T: Item> Listing<'_, T> {
    /// Asks and prints.
    pub async fn show(self, api: &Api, out: &mut Out) -> Result<u8, Failure> {
        let format = self.how.output.output.filter(|format| *format != Format::Wide);
        match (format, self.how.watch) {
            (None, false) => self.table(api, out).await,
            (None, true) => self.changing_table(api, out).await,
            (Some(format), false) => self.objects(api, out, format).await,
            (Some(format), true) => self.changing_objects(api, out, format).await,
        }
    }

    async fn table(self, api: &Api, out: &mut Out) -> Result<u8, Failure> {
        let mut pages = api.pages::<T>(self.scope.clone(), T::TABLES);
        let mut table = Table::new(self.columns);
        let mut is_empty = true;
        while let Some(page) = pages.next().await.map_err(|error| api.failure(&error))? {
            is_empty &= page.is_empty();
            for item in page.iter().filter(|item| (self.keep)(item)) {
                table.push((self.row)(item));
            }
        }
        if is_empty || (table.is_empty() && !self.bare_header) {
            out.write_all(NOTHING.as_bytes())?;
        } else {
            table.sort(self.order);
            table.print(out)?;
        }
        Ok(0)
    }

    async fn changing_table(self, api: &Api, out: &mut Out) -> Result<u8, Failure> {
        let mut live = Live::<T>::new(api, self.scope.clone());
        let mut table = Some(Table::new(self.columns));
        let mut layout = None;
        let mut rows: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
        loop {
            let row = match live.next().await {
                Change::Applied(item) if (self.keep)(&item) => {
                    let (key, row) = (item.key(), (self.row)(&item));
                    rows.insert((key.namespace, key.name), row.clone());
                    row
                }
                Change::Applied(_) => continue,
                Change::Gone(gone) => match rows.remove(&(gone.key.namespace, gone.key.name)) {
                    Some(row) => deleted(row, self.state),
                    None => continue,
                },
                Change::Listed => {
                    if let Some(mut table) = table.take() {
                        table.sort(self.order);
                        layout = Some(table.print(out)?);
                        out.flush()?;
                    }
                    continue;
                }
                // What cannot be read at all is not waited for.
                Change::Trouble(failure) if layout.is_none() => return Err(failure),
                Change::Trouble(_) => continue,
            };
            match (&mut table, &layout) {
                (Some(table), _) => table.push(row),
                (None, Some(layout)) => {
                    layout.print(out, &row)?;
                    out.flush()?;
                }
                (None, None) => {}
            }
        }
    }

    async fn objects(self, api: &Api, out: &mut Out, format: Format) -> Result<u8, Failure> {
        let mut pages = api.pages::<Whole>(self.scope.clone(), None);
        let kind = self.scope.kind();
        let mut writer = ObjectWriter::list(out, format, kind);
        while let Some(page) = pages.next().await.map_err(|error| api.failure(&error))? {
            for whole in page {
                if wanted(self.keep, &whole) {
                    writer.push(whole.0)?;
                }
            }
        }
        if writer.end()? == 0 && format == Format::Name {
            // Whoever reads names takes each line for one.
            tell(NOTHING);
        }
        Ok(0)
    }

    async fn changing_objects(self, api: &Api, out: &mut Out, format: Format) -> Result<u8, Failure> {
        let kind = self.scope.kind();
        let mut live = Live::<Whole>::new(api, self.scope);
        let mut writer = ObjectWriter::single(out, format, kind);
        let mut is_listed = false;
        let mut shown: BTreeSet<(String, String)> = BTreeSet::new();
        loop {
            match live.next().await {
                Change::Applied(whole) if wanted(self.keep, &whole) => {
                    let key = whole.key();
                    shown.insert((key.namespace, key.name));
                    writer.push(whole.0)?;
                }
                Change::Gone(gone) => {
                    let name = (gone.key.namespace.clone(), gone.key.name.clone());
                    if shown.remove(&name) {
                        // As kubectl does: once more, as it was last.
                        writer.push(gone.last.unwrap_or_else(|| Whole::from(gone.key)).0)?;
                    }
                }
                Change::Listed => is_listed = true,
                Change::Trouble(failure) if !is_listed => return Err(failure),
                Change::Applied(_) | Change::Trouble(_) => {}
            }
            if is_listed {
                writer.flush()?;
            }
        }
    }
}

/// Whether a whole object is wanted. One that cannot be read is shown rather than hidden.
fn wanted<T: Item>(keep: &dyn Fn(&T) -> bool, whole: &Whole) -> bool {
    T::deserialize(&whole.0).map_or(true, |item| keep(&item))
}

#[cfg(test)]
mod tests {
    use crate::fake::{Answer, Fake};
    use serde_json::{Value, json};

    fn object(name: &str, version: u32) -> Value {
        json!({"metadata": {"name": name, "namespace": "ns", "resourceVersion": version.to_string()}})
    }

    async fn changing() -> Fake {
        Fake::serve(|path| match path.contains("watch=true") {
            true => Answer::stream(&[("MODIFIED", object("a", 2)), ("DELETED", object("a", 3))]),
            false => Answer::list(&[object("a", 1), object("b", 1)]),
        })
        .await
    }

    #[tokio::test]
    async fn objects_that_change_are_documents_of_one_stream() {
        let words = ["jobtemplate", "list", "-n", "ns", "-w", "-o", "yaml"];
        let printed = changing().await.vcctl_until(&words, "\"3\"\n").await;
        let documents = crate::output::files::objects(&printed).unwrap();
        let versions: Vec<_> = documents
            .iter()
            .map(|object| {
                format!(
                    "{}{}",
                    object["metadata"]["name"], object["metadata"]["resourceVersion"]
                )
            })
            .map(|text| text.replace('"', ""))
            .collect();
        // What is deleted comes once more, as with kubectl.
        assert_eq!(versions, ["a1", "b1", "a2", "a3"], "{printed}");
    }

    #[tokio::test]
    async fn what_is_deleted_says_so_where_it_can() {
        let words = ["jobtemplate", "list", "-n", "ns", "--watch=true"];
        let printed = changing().await.vcctl_until(&words, "Deleted").await;
        let lines: Vec<Vec<&str>> = printed
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1..],
            [
                vec!["a", "ns"],
                vec!["b", "ns"],
                vec!["a", "ns"],
                vec!["a", "ns", "Deleted"]
            ]
        );
        let words = ["jobflow", "list", "-n", "ns", "-w"];
        let printed = changing().await.vcctl_until(&words, "Deleted").await;
        let last = printed.lines().last().unwrap();
        assert_eq!(
            last.split_whitespace().collect::<Vec<_>>(),
            ["a", "ns", "Deleted", "<unknown>"]
        );
    }

    #[tokio::test]
    async fn no_names_are_no_line() {
        let fake = Fake::serve(|_| Answer::list(&[])).await;
        let (printed, ended) = fake.vcctl(&["job", "list", "-o", "name"]).await;
        assert_eq!((printed.as_str(), ended), ("", Ok(0)));
        let (printed, _) = fake.vcctl(&["job", "list"]).await;
        assert_eq!(printed, "No resources found\n");
    }
}
