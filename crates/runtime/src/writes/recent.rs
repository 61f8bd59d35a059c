//! A map that remembers what was used lately and forgets the rest, so that memory of the past stays bounded.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Remembers the last `limit` keys at least, twice as many at most.
///
/// Two generations instead of a list of uses: when the young one is full, it becomes the old one and what was the old
/// one is forgotten. What is looked up moves to the young one.
pub struct Recent<K, V> {
    young: FxHashMap<K, V>,
    old: FxHashMap<K, V>,
    limit: usize,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    pub fn new(limit: usize) -> Self {
        Recent {
            young: FxHashMap::default(),
            old: FxHashMap::default(),
            limit: limit.max(1),
        }
    }

    /// What is remembered for a key. It counts as used.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        if let Some((key, value)) = self.old.remove_entry(key) {
            self.insert(key, value);
        }
        self.young.get_mut(key)
    }

    /// What is remembered for a key. It does not count as used.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    pub fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.limit && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let old = self.old.remove(key);
        self.young.remove(key).or(old)
    }

    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_and_the_rest_forgotten() {
        let mut recent = Recent::new(10);
        for key in 0..1000 {
            recent.insert(key, key);
            assert!(recent.len() <= 20);
            for back in 0..key.min(10) {
                assert_eq!(recent.get(&(key - back)), Some(&(key - back)));
            }
        }
        assert_eq!(recent.get(&0), None);
    }

    #[test]
    fn what_is_used_stays() {
        let mut recent = Recent::new(10);
        recent.insert(-1, 0);
        for key in 0..1000 {
            recent.insert(key, key);
            *recent.get_mut(&-1).unwrap() += 1;
        }
        assert_eq!(recent.remove(&-1), Some(1000));
        assert_eq!(recent.get(&-1), None);
    }
}
