package sign

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// What a plugin may have at most.
const (
	MaxFiles = 2000
	MaxBytes = 64 << 20 // of all files together
)

// Left are files that file managers and version control leave behind, and that nothing of a plugin's reads.
var left = []string{"Thumbs.db", "desktop.ini", ".DS_Store", ".directory"}

// excluded reports whether a path is out of the signature's account: the signature itself, what Python compiled, and what
// version control and file managers keep.
func excluded(p string) bool {
	if p == Name || slices.Contains(left, path.Base(p)) {
		return true
	}
	for part := range strings.SplitSeq(path.Dir(p), "/") {
		if part == "__pycache__" || part == ".git" {
			return true
		}
	}
	return false
}

// The kinds of files without which a signature is not complete. The format's first makers list those of the first line
// only; the others are code as well.
var signable = []string{
	".py", ".json", ".js", ".css", ".html", ".md",
	".star", ".sh", ".pyc", ".pyd", ".pth", ".so",
}

// mustBeSigned reports whether a file that is not in the signature spoils it: one that could be code. Pictures, sounds and
// texts may be missing from it.
func mustBeSigned(p string, mode fs.FileMode) bool {
	return slices.Contains(signable, strings.ToLower(path.Ext(p))) || mode&0o111 != 0
}

// list returns the files of a plugin that can be signed, with their modes. Links are among them.
func list(files fs.FS) (map[string]fs.FileMode, error) {
	found := make(map[string]fs.FileMode)
	err := fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if d.Name() == "__pycache__" || d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		case excluded(p):
			return nil
		case len(found) == MaxFiles:
			return fmt.Errorf("the plugin has more than %d files", MaxFiles)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if mode := info.Mode(); !mode.IsRegular() && mode&fs.ModeSymlink == 0 {
			return fmt.Errorf("%s is no file", p)
		}
		found[p] = info.Mode()
		return nil
	})
	return found, err
}

// hash returns the hash of a file, with its line ends as on Unix, and how many bytes it has: most at most.
func hash(files fs.FS, p string, most int64) (string, int64, error) {
	f, err := files.Open(p)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	lines := &unixLines{to: h}
	n, err := io.Copy(lines, io.LimitReader(f, most+1))
	if err == nil {
		err = lines.end()
	}
	if err == nil && n > most {
		err = fmt.Errorf("the files of the plugin have more than %d MiB", MaxBytes>>20)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), n, err
}

// unixLines writes CR LF as LF.
type unixLines struct {
	to   io.Writer
	held bool // a CR, until what follows it is known
}

func (w *unixLines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if w.held && p[0] != '\n' {
			if _, err := w.to.Write([]byte{'\r'}); err != nil {
				return 0, err
			}
		}
		before, after, held := bytes.Cut(p, []byte{'\r'})
		if _, err := w.to.Write(before); err != nil {
			return 0, err
		}
		p, w.held = after, held
	}
	return n, nil
}

func (w *unixLines) end() error {
	if !w.held {
		return nil
	}
	_, err := w.to.Write([]byte{'\r'})
	return err
}

// readFile reads a whole file of at most so many bytes.
func readFile(files fs.FS, name string, most int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return text, err
}
