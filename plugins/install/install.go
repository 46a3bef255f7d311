package install

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bellbird/plugins"
	"bellbird/plugins/sign"
)

// Options say where plugins are installed.
type Options struct {
	Gate    Gate
	UserDir string // the user's directory of plugins; it is made if it isn't there

	// Taken says what has a name already that no plugin of the user's may have; "": nothing. Nil: no name is.
	Taken func(name string) string

	// AllowUnsigned lets in this plugin although nobody signed it.
	AllowUnsigned bool

	Client *http.Client // for addresses; nil: one that goes to https only
}

// staging is how the directories begin in which plugins are unpacked, beside where they will be. The plugin lies one level
// below: a loader doesn't take it for one.
const staging = ".install-"

// A Staged plugin is unpacked and checked, and waits for what its owner says. Commit or Discard must follow.
type Staged struct {
	*Sheet
	Update bool // it takes the place of one that is there

	dir  string // the directory of its own that it is unpacked in
	root string // its files, in dir
	o    Options
	d    *declared
	r    sign.Result
}

// Stage fetches a plugin from a directory, a zip file or an https address, and checks all that can be checked without
// running it.
func (o Options) Stage(ctx context.Context, source string) (*Staged, error) {
	if err := os.MkdirAll(o.UserDir, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.UserDir, staging)
	if err != nil {
		return nil, err
	}
	s := &Staged{dir: dir, root: filepath.Join(dir, "plugin"), o: o}
	if err = os.Mkdir(s.root, 0o755); err == nil {
		err = o.fetch(ctx, source, s)
	}
	if err == nil {
		err = s.inspect()
	}
	if err != nil {
		s.Discard()
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return s, nil
}

// fetch brings the files of a plugin into where it is staged.
func (o Options) fetch(ctx context.Context, source string, s *Staged) error {
	into, err := os.OpenRoot(s.root)
	if err != nil {
		return err
	}
	defer into.Close()
	if scheme, _, ok := strings.Cut(source, "://"); ok {
		if !strings.EqualFold(scheme, "https") {
			return errors.New("a plugin can be had from an address only by https")
		}
		archive := filepath.Join(s.dir, "archive")
		if err := o.download(ctx, source, archive); err != nil {
			return err
		}
		return unzipFile(archive, into)
	}
	info, err := os.Stat(source)
	switch {
	case err != nil:
		return reason(err)
	case info.Mode().IsRegular():
		return unzipFile(source, into)
	case !info.IsDir():
		return errors.New("it is neither a directory nor a zip file")
	}
	from, err := os.OpenRoot(source)
	if err != nil {
		return reason(err)
	}
	defer from.Close()
	return copyFiles(from.FS(), into)
}

// reason is an error without the path, which its reader knows.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func unzipFile(name string, into *os.Root) error {
	f, err := os.Open(name)
	if err != nil {
		return reason(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxDownload {
		return fmt.Errorf("it has more than %d MiB", maxDownload>>20)
	}
	r, err := zip.NewReader(f, info.Size())
	if err != nil {
		return fmt.Errorf("it is no zip file that can be read: %w", err)
	}
	return unzip(r, into)
}

// longestDownload is how long a server may take for all.
const longestDownload = 2 * time.Minute

func (o Options) download(ctx context.Context, address, to string) error {
	ctx, cancel := context.WithTimeout(ctx, longestDownload)
	defer cancel()
	client := http.Client{}
	if o.Client != nil {
		client = *o.Client
	}
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != "https" {
			return errors.New("it leads to an address without https")
		}
		if len(via) >= 5 {
			return errors.New("it leads on and on")
		}
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return reasonOf(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return reasonOf(err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the server answers %s", response.Status)
	case response.ContentLength > maxDownload:
		return fmt.Errorf("it has more than %d MiB", maxDownload>>20)
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(response.Body, maxDownload+1))
	if err == nil && n > maxDownload {
		err = fmt.Errorf("it has more than %d MiB", maxDownload>>20)
	}
	return errors.Join(err, f.Close())
}

// reasonOf is an error of HTTP without the address, which its reader knows.
func reasonOf(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// inspect checks what was fetched, and finds out what it means to its owner.
func (s *Staged) inspect() (err error) {
	if s.d, s.r, err = s.o.Gate.examine(s.root); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("it has no plugin.json")
		}
		return errors.New(strings.ReplaceAll(err.Error(), s.root+string(filepath.Separator), ""))
	}
	d := s.d
	for field, value := range map[string]string{"version": d.Version, "description": d.Description} {
		if strings.TrimSpace(value) == "" {
			return fmt.Errorf("plugin.json: %s is missing: its owner must be able to tell what it is", field)
		}
	}
	switch s.r.State {
	case sign.Tampered:
		return tampered(s.r)
	case sign.Unknown:
		return unknown(s.r)
	case sign.Unsigned:
		if !s.o.AllowUnsigned && !s.o.Gate.AllowUnsigned {
			return unsigned("install")
		}
	}
	if err := s.place(); err != nil {
		return err
	}
	s.Sheet, err = s.o.Gate.sheet(d, s.r)
	return err
}

// place checks that the plugin can be where its name says.
func (s *Staged) place() error {
	name := s.d.Name
	if s.o.Taken != nil {
		if what := s.o.Taken(name); what != "" {
			return fmt.Errorf("its name %q is that of %s: it can't be installed beside it", name, what)
		}
	}
	entries, err := os.ReadDir(s.o.UserDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(s.o.UserDir, e.Name())
		m, err := plugins.ReadManifest(dir)
		switch {
		case e.Name() == name && e.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a link, which would be lost: remove it first", dir)
		case e.Name() == name && errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is in the way: it has no plugin", dir)
		case e.Name() == name && err == nil && m.Name != name:
			return fmt.Errorf("%s has another plugin, %q: move it first", dir, m.Name)
		case e.Name() == name:
			s.Update = true
		case err == nil && m.Name == name:
			return fmt.Errorf("%s has a plugin of the same name: remove it first", dir)
		}
	}
	return nil
}

// Commit puts the plugin where it belongs, in one step, and keeps that its owner agreed to its sheet. One that was there is
// gone then; what it kept stays.
func (s *Staged) Commit() error {
	defer s.Discard()
	if err := flush(s.root); err != nil { // before its name is there for good
		return err
	}
	old, err := readConsents(s.o.Gate.Consents)
	if err != nil {
		return err
	}
	if err := s.agree(s.o.AllowUnsigned); err != nil {
		return err
	}
	target := filepath.Join(s.o.UserDir, s.d.Name)
	if s.Update {
		err = exchange(s.root, target, filepath.Join(s.dir, "old"))
	} else {
		err = os.Rename(s.root, target)
	}
	if err != nil { // then what he agreed to is not there
		return errors.Join(err, changeConsents(s.o.Gate.Consents, func(all map[string]Consent) {
			delete(all, s.d.Name)
			if c, ok := old[s.d.Name]; ok {
				all[s.d.Name] = c
			}
		}))
	}
	return syncDir(s.o.UserDir)
}

// Discard removes what is staged. After Commit it does nothing.
func (s *Staged) Discard() { os.RemoveAll(s.dir) }

// swap puts new in the place of old by two renames, between which there is neither.
func swap(new, old, aside string) error {
	if err := os.Rename(old, aside); err != nil {
		return err
	}
	if err := os.Rename(new, old); err != nil {
		return errors.Join(err, os.Rename(aside, old))
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Remove takes a plugin out of the user's directory, and with it what it was allowed. What it kept stays.
func (o Options) Remove(name string) error {
	dir, err := o.Find(name)
	if err != nil {
		return err
	}
	if err := changeConsents(o.Gate.Consents, func(all map[string]Consent) { delete(all, name) }); err != nil {
		return err
	}
	aside, err := os.MkdirTemp(o.UserDir, staging)
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside)
	return os.Rename(dir, filepath.Join(aside, "old")) // a link goes, and what it leads to stays
}

// Find returns the directory of the user's plugin of that name.
func (o Options) Find(name string) (string, error) {
	entries, err := os.ReadDir(o.UserDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		dir := filepath.Join(o.UserDir, e.Name())
		if m, err := plugins.ReadManifest(dir); err == nil && m.Name == name {
			return dir, nil
		}
	}
	return "", fmt.Errorf("there is no plugin %q in %s", name, o.UserDir)
}

// Sweep removes what installations left behind that were cut off, by a power cut as well: directories of them that are an
// hour old.
func (o Options) Sweep(now time.Time) error {
	entries, err := os.ReadDir(o.UserDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), staging) && e.IsDir() && now.Sub(info.ModTime()) > time.Hour {
			if err := os.RemoveAll(filepath.Join(o.UserDir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func readManifest(files fs.FS) ([]byte, error) {
	f, err := files.Open(manifestName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20)) // what is too large is refused when it is parsed
}
