//! Interned strings: label keys and values, names and namespaces become numbers that compare in one instruction.

use crate::ids::Sym;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A table of strings that only grows.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    by_text: FxHashMap<Arc<str>, Sym>,
    texts: Vec<Arc<str>>,
}

impl Interner {
    /// The number of `text`, made on first sight.
    pub fn intern(&mut self, text: &str) -> Sym {
        if let Some(&sym) = self.by_text.get(text) {
            return sym;
        }
        let sym = Sym::from_index(self.texts.len());
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.by_text.insert(text, sym);
        sym
    }

    /// The number of `text`, if it was ever seen.
    pub fn get(&self, text: &str) -> Option<Sym> {
        self.by_text.get(text).copied()
    }

    /// The text behind a number.
    pub fn text(&self, sym: Sym) -> &str {
        &self.texts[sym.index()]
    }

    /// The shared text behind a number.
    pub fn shared(&self, sym: Sym) -> Arc<str> {
        self.texts[sym.index()].clone()
    }
}
