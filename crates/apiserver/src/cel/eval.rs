//! Evaluates expressions over borrowed values.

use super::CelError;
use super::functions;
use super::parse::{Expr, Operator};
use serde_json::Value;
use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

/// Steps of one evaluation, at most: an expression of a user must not hold up the server.
const MOST_STEPS: usize = 1_000_000;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Str(Cow<'a, str>),
    List(Vec<Val<'a>>),
    Map(Vec<(Val<'a>, Val<'a>)>),
    /// A list or an object as it is stored.
    Stored(&'a Value),
}

pub(super) type Outcome<'a> = Result<Val<'a>, CelError>;

pub(super) fn wrong<T>(message: impl Into<String>) -> Result<T, CelError> {
    Err(CelError::Evaluation(message.into()))
}

impl<'a> Val<'a> {
    pub(super) fn of(value: &'a Value) -> Val<'a> {
        match value {
            Value::Null => Val::Null,
            Value::Bool(flag) => Val::Bool(*flag),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Val::Int(whole),
                None => Val::Double(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Val::Str(Cow::Borrowed(text)),
            stored => Val::Stored(stored),
        }
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Double(_) => "double",
            Val::Str(_) => "string",
            Val::List(_) | Val::Stored(Value::Array(_)) => "list",
            Val::Map(_) | Val::Stored(_) => "map",
        }
    }

    /// The items of a list, or the keys of a map.
    pub(super) fn items(&self) -> Result<Vec<Val<'a>>, CelError> {
        Ok(match self {
            Val::List(items) => items.clone(),
            Val::Map(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
            Val::Stored(Value::Array(items)) => items.iter().map(Val::of).collect(),
            Val::Stored(Value::Object(fields)) => fields
                .keys()
                .map(|key| Val::Str(Cow::Borrowed(key.as_str())))
                .collect(),
            other => return wrong(format!("no such overload: iteration over {}", other.type_name())),
        })
    }

    pub(super) fn member(&self, name: &str) -> Option<Val<'a>> {
        match self {
            Val::Stored(stored) => stored.get(name).map(Val::of),
            Val::Map(entries) => {
                let found = entries
                    .iter()
                    .find(|(key, _)| matches!(key, Val::Str(key) if key == name));
                found.map(|(_, value)| value.clone())
            }
            _ => None,
        }
    }

    pub(super) fn equals(&self, other: &Val<'_>) -> bool {
        match (self, other) {
            (Val::Null, Val::Null) => true,
            (Val::Bool(a), Val::Bool(b)) => a == b,
            (Val::Str(a), Val::Str(b)) => a == b,
            (Val::Stored(a), Val::Stored(b)) => a == b,
            (Val::Int(_) | Val::Double(_), Val::Int(_) | Val::Double(_)) => {
                self.compare(other) == Some(Ordering::Equal)
            }
            _ => match (self.type_name(), other.type_name()) {
                ("list", "list") => {
                    let (a, b) = (
                        self.items().unwrap_or_default(),
                        other.items().unwrap_or_default(),
                    );
                    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.equals(b))
                }
                ("map", "map") => {
                    let (a, b) = (
                        self.items().unwrap_or_default(),
                        other.items().unwrap_or_default(),
                    );
                    a.len() == b.len()
                        && a.iter().all(|key| match key {
                            Val::Str(key) => match (self.member(key), other.member(key)) {
                                (Some(a), Some(b)) => a.equals(&b),
                                _ => false,
                            },
                            _ => false,
                        })
                }
                _ => false,
            },
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "comparisons between whole numbers and fractions are inexact"
    )]
    pub(super) fn compare(&self, other: &Val<'_>) -> Option<Ordering> {
        match (self, other) {
            (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
            (Val::Int(a), Val::Double(b)) => (*a as f64).partial_cmp(b),
            (Val::Double(a), Val::Int(b)) => a.partial_cmp(&(*b as f64)),
            (Val::Double(a), Val::Double(b)) => a.partial_cmp(b),
            (Val::Str(a), Val::Str(b)) => Some(a.cmp(b)),
            (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

pub(super) fn evaluate<'a>(expression: &'a Expr, scope: &[(&'static str, &'a Value)]) -> Outcome<'a> {
    let steps = Cell::new(0);
    let evaluator = Evaluator { scope, steps: &steps };
    evaluator.value(expression, &[])
}

/// Variables of macros, innermost last.
pub(super) type Locals<'l, 'a> = &'l [(&'a str, Val<'a>)];

#[derive(Clone, Copy)]
pub(super) struct Evaluator<'s, 'a> {
    scope: &'s [(&'static str, &'a Value)],
    steps: &'s Cell<usize>,
}

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn value(&self, expression: &'a Expr, locals: Locals<'_, 'a>) -> Outcome<'a> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MOST_STEPS {
            return wrong("operation cancelled: actual cost limit exceeded");
        }
        Ok(match expression {
            Expr::Null => Val::Null,
            Expr::Bool(flag) => Val::Bool(*flag),
            Expr::Int(value) => Val::Int(*value),
            Expr::Double(value) => Val::Double(*value),
            Expr::Str(text) => Val::Str(Cow::Borrowed(text)),
            Expr::Name(name) => return self.variable(name, locals),
            Expr::List(items) => {
                let items: Result<_, _> = items.iter().map(|item| self.value(item, locals)).collect();
                Val::List(items?)
            }
            Expr::Map(entries) => {
                let pair = |(key, value): &'a (Expr, Expr)| {
                    Ok((self.value(key, locals)?, self.value(value, locals)?))
                };
                Val::Map(entries.iter().map(pair).collect::<Result<_, CelError>>()?)
            }
            Expr::Member(of, name) => match self.value(of, locals)?.member(name) {
                Some(value) => value,
                None => return wrong(format!("no such key: {name}")),
            },
            Expr::Index(of, index) => return at(&self.value(of, locals)?, &self.value(index, locals)?),
            Expr::Call(of, name, arguments) => {
                return functions::call(self, of.as_deref(), name, arguments, locals);
            }
            Expr::Not(inner) => Val::Bool(!self.flag(inner, locals)?),
            Expr::Negative(inner) => match self.value(inner, locals)? {
                Val::Int(value) => match value.checked_neg() {
                    Some(value) => Val::Int(value),
                    None => return wrong("integer overflow"),
                },
                Val::Double(value) => Val::Double(-value),
                other => return wrong(format!("no such overload: -{}", other.type_name())),
            },
            Expr::Choice(condition, yes, no) => {
                let chosen = if self.flag(condition, locals)? { yes } else { no };
                return self.value(chosen, locals);
            }
            Expr::Binary(Operator::Or, left, right) => return self.either(left, right, true, locals),
            Expr::Binary(Operator::And, left, right) => return self.either(left, right, false, locals),
            Expr::Binary(operator, left, right) => {
                return binary(*operator, self.value(left, locals)?, self.value(right, locals)?);
            }
        })
    }

    fn variable(&self, name: &str, locals: Locals<'_, 'a>) -> Outcome<'a> {
        if let Some((_, value)) = locals.iter().rev().find(|(local, _)| *local == name) {
            return Ok(value.clone());
        }
        match self.scope.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => Ok(Val::of(value)),
            None => wrong(format!("undeclared reference to '{name}'")),
        }
    }

    pub(super) fn flag(&self, expression: &'a Expr, locals: Locals<'_, 'a>) -> Result<bool, CelError> {
        match self.value(expression, locals)? {
            Val::Bool(flag) => Ok(flag),
            other => wrong(format!(
                "no such overload: expected bool, got {}",
                other.type_name()
            )),
        }
    }

    /// One side that decides is enough, whatever became of the other.
    fn either(&self, left: &'a Expr, right: &'a Expr, decides: bool, locals: Locals<'_, 'a>) -> Outcome<'a> {
        let left = self.flag(left, locals);
        if left == Ok(decides) {
            return Ok(Val::Bool(decides));
        }
        let right = self.flag(right, locals);
        if right == Ok(decides) {
            return Ok(Val::Bool(decides));
        }
        left?;
        right?;
        Ok(Val::Bool(!decides))
    }
}

fn at<'a>(of: &Val<'a>, index: &Val<'a>) -> Outcome<'a> {
    match index {
        Val::Str(name) => match of.member(name) {
            Some(value) => Ok(value),
            None => wrong(format!("no such key: {name}")),
        },
        Val::Int(index) if of.type_name() == "list" => {
            let items = of.items()?;
            let found = usize::try_from(*index)
                .ok()
                .and_then(|index| items.get(index).cloned());
            found.map_or_else(|| wrong(format!("index out of bounds: {index}")), Ok)
        }
        other => wrong(format!(
            "no such overload: {}[{}]",
            of.type_name(),
            other.type_name()
        )),
    }
}

fn binary<'a>(operator: Operator, left: Val<'a>, right: Val<'a>) -> Outcome<'a> {
    let overflow = || CelError::Evaluation("integer overflow".to_owned());
    let ordered = |holds: fn(Ordering) -> bool| match left.compare(&right) {
        Some(ordering) => Ok(Val::Bool(holds(ordering))),
        None => wrong(format!(
            "no such overload: {} and {}",
            left.type_name(),
            right.type_name()
        )),
    };
    match operator {
        Operator::Equal => return Ok(Val::Bool(left.equals(&right))),
        Operator::Unequal => return Ok(Val::Bool(!left.equals(&right))),
        Operator::Less => return ordered(Ordering::is_lt),
        Operator::AtMost => return ordered(Ordering::is_le),
        Operator::Greater => return ordered(Ordering::is_gt),
        Operator::AtLeast => return ordered(Ordering::is_ge),
        Operator::In => {
            let found = match (&right, &left) {
                (map, Val::Str(key)) if map.type_name() == "map" => map.member(key).is_some(),
                _ => right.items()?.iter().any(|item| item.equals(&left)),
            };
            return Ok(Val::Bool(found));
        }
        _ => {}
    }
    match (operator, left, right) {
        (Operator::Add, Val::Str(a), Val::Str(b)) => Ok(Val::Str(Cow::Owned(format!("{a}{b}")))),
        (operator, Val::Int(a), Val::Int(b)) => {
            let value = match operator {
                Operator::Add => a.checked_add(b),
                Operator::Subtract => a.checked_sub(b),
                Operator::Multiply => a.checked_mul(b),
                Operator::Divide if b == 0 => return wrong("division by zero"),
                Operator::Divide => a.checked_div(b),
                _ if b == 0 => return wrong("modulus by zero"),
                _ => a.checked_rem(b),
            };
            value.map(Val::Int).ok_or_else(overflow)
        }
        (operator, Val::Double(a), Val::Double(b)) => Ok(Val::Double(match operator {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
            _ => return wrong("no such overload: double % double"),
        })),
        (Operator::Add, a, b) if a.type_name() == "list" && b.type_name() == "list" => {
            let mut items = a.items()?;
            items.extend(b.items()?);
            Ok(Val::List(items))
        }
        (_, a, b) => wrong(format!(
            "no such overload: {} and {}",
            a.type_name(),
            b.type_name()
        )),
    }
}
