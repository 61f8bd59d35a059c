//! The rules, asked as the API server asks: a review in, a review out.

mod cronjobs;
mod envelope;
mod hypernodes;
mod jobflows;
mod jobs_create;
mod jobs_mutate;
mod jobs_update;
mod podgroups;
mod pods;
mod properties;
mod queue_limits;
mod queues;
mod template;
mod world;
