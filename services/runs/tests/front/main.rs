//! The service as its clients meet it: a whole one for each test, over both transports.

mod description;

mod server;

mod openapi;

mod both;

mod states;

mod answers;

mod calls;

mod health;

mod keys;

mod limits;

mod pages;

mod points;

mod rest;

mod stream;

mod transports;

mod warnings;
