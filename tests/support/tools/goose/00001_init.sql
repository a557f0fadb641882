-- +goose Up
CREATE TABLE users (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, created timestamptz DEFAULT now());
CREATE INDEX users_name ON users (lower(name));
-- +goose Down
DROP TABLE users;
