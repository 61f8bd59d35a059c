//! Lists, as every `list` command shows them: a table, whole objects, or changes as they happen.
//!
//! The width of a column may follow the longest name, so a table is printed when the last page is there. Until then only
//! its cells are kept: ten thousand Jobs take a few megabytes, not what their pod templates take.

use crate::api::{Api, Scope};
use crate::args::ListingArgs;
use crate::failure::Failure;
use crate::live::{Change, Item, Live, Whole};
use crate::output::{Column, Format, NOTHING, ObjectWriter, Out, Table};
use std::collections::BTreeMap;
use std::io::Write as _;

/// What stands in the state of something that was deleted.
const DELETED: &str = "Deleted";

/// A list to be shown.
pub struct Listing<'a, T> {
    /// Which objects are asked for.
    pub scope: Scope,
    /// How they are shown.
    pub how: &'a ListingArgs,
    /// The columns of the table.
    pub columns: Vec<Column>,
    /// Which column says how an object is, for those that are deleted.
    pub state: usize,
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
                Change::Gone(key) => match rows.remove(&(key.namespace, key.name)) {
                    Some(mut row) => {
                        if let Some(cell) = row.get_mut(self.state) {
                            DELETED.clone_into(cell);
                        }
                        row
                    }
                    None => continue,
                },
                Change::Listed => {
                    if let Some(table) = table.take() {
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
            out.write_all(NOTHING.as_bytes())?;
        }
        Ok(0)
    }

    async fn changing_objects(self, api: &Api, out: &mut Out, format: Format) -> Result<u8, Failure> {
        let kind = self.scope.kind();
        let mut live = Live::<Whole>::new(api, self.scope);
        let mut is_listed = false;
        loop {
            match live.next().await {
                Change::Applied(whole) if wanted(self.keep, &whole) => {
                    ObjectWriter::single(out, format, kind).push(whole.0)?;
                    if is_listed {
                        out.flush()?;
                    }
                }
                Change::Listed => {
                    is_listed = true;
                    out.flush()?;
                }
                Change::Trouble(failure) if !is_listed => return Err(failure),
                Change::Applied(_) | Change::Gone(_) | Change::Trouble(_) => {}
            }
        }
    }
}

/// Whether a whole object is wanted. One that cannot be read is shown rather than hidden.
fn wanted<T: Item>(keep: &dyn Fn(&T) -> bool, whole: &Whole) -> bool {
    T::deserialize(&whole.0).map_or(true, |item| keep(&item))
}
