//! The service as its clients meet it: a whole one for each test, over both transports.

mod server;

mod calls;

mod health;

mod keys;

mod limits;

mod pages;

mod rest;

mod stream;
