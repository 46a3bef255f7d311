package compare

import (
	"database/sql"
	"encoding/json"
	"fmt"

	_ "modernc.org/sqlite"
)

// lite is the same in SQLite: rows have the name of their chat, as in the reference. A commit is durable when it returns.
type lite struct {
	db *sql.DB
	tx *sql.Tx // of writes that nobody waits for
}

const schema = `
create table if not exists chats (name text primary key, settings text);
create table if not exists messages (chat_name text, role text, content text, time text);
create index if not exists messages_chat on messages (chat_name);
create table if not exists plugin_chat_data (plugin text, chat_name text, key text, seq integer, value text, updated_at text,
	primary key (plugin, chat_name, key, seq));
create index if not exists rows_chat on plugin_chat_data (chat_name);
`

func openLite(path string) (*lite, error) {
	db, err := sql.Open("sqlite", path+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec(schema)
	return &lite{db: db}, err
}

type execer interface {
	Exec(query string, args ...any) (sql.Result, error)
}

// in runs f in a transaction of its own.
func (l *lite) in(f func(execer) error) error {
	tx, err := l.db.Begin()
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		tx.Rollback()
		return err
	}
	return tx.Commit()
}

func (l *lite) create(name string) error {
	_, err := l.db.Exec("insert into chats values (?, '{}')", name)
	return err
}

func (l *lite) rename(old, name string) error {
	return l.in(func(x execer) error {
		for _, q := range []string{"update chats set name = ? where name = ?", "update messages set chat_name = ? where chat_name = ?", "update plugin_chat_data set chat_name = ? where chat_name = ?"} {
			if _, err := x.Exec(q, name, old); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *lite) remove(name string) error {
	return l.in(func(x execer) error {
		for _, q := range []string{"delete from chats where name = ?", "delete from messages where chat_name = ?", "delete from plugin_chat_data where chat_name = ?"} {
			if _, err := x.Exec(q, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *lite) put(chat, key string, v json.RawMessage, batched bool) error {
	const q = "insert or replace into plugin_chat_data values ('p', ?, ?, 0, ?, '2030-01-01T12:00:00Z')"
	return l.one(batched, q, chat, key, string(v))
}

func (l *lite) add(chat, key string, v json.RawMessage, batched bool) error {
	const q = `insert into plugin_chat_data values ('p', ?, ?,
		(select coalesce(max(seq), 0) + 1 from plugin_chat_data where plugin = 'p' and chat_name = ? and key = ?), ?, '2030-01-01T12:00:00Z')`
	return l.one(batched, q, chat, key, chat, key, string(v))
}

func (l *lite) one(batched bool, q string, args ...any) (err error) {
	if !batched {
		_, err = l.db.Exec(q, args...)
		return err
	}
	if l.tx == nil {
		if l.tx, err = l.db.Begin(); err != nil {
			return err
		}
	}
	_, err = l.tx.Exec(q, args...)
	return err
}

func (l *lite) commit() error {
	tx := l.tx
	l.tx = nil
	if tx == nil {
		return nil
	}
	return tx.Commit()
}

func (l *lite) fill(chat string, rows int) error {
	return l.in(func(x execer) error {
		for i := range rows {
			_, err := x.Exec("insert into plugin_chat_data values ('p', ?, 'k', ?, ?, '2030-01-01T12:00:00Z')", chat, i+1, value(i))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *lite) turn(chat, heard, answer string) error {
	return l.in(func(x execer) error {
		for _, m := range [][2]string{{"user", heard}, {"assistant", answer}} {
			if _, err := x.Exec("insert into messages values (?, ?, ?, '2030-01-01T12:00:00Z')", chat, m[0], m[1]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *lite) close() error { return l.db.Close() }

func value(i int) string { return fmt.Sprintf(`{"n":%d,"text":"what a plugin keeps in a row"}`, i) }
