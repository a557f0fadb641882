CREATE TABLE users (
    email text NOT NULL,
    born date
);
INSERT INTO users VALUES ('a@b', '-infinity'), ('c@d', NULL);
ALTER TABLE users ADD CONSTRAINT users_pk PRIMARY KEY (email);
CREATE INDEX users_born ON users (born);
