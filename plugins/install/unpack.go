package install

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"

	"bellbird/plugins/sign"
)

// What a plugin from elsewhere may be at most. Its files may be as many and as large as a signature can have.
const (
	maxDownload = 16 << 20 // bytes of a zip file
	maxPath     = 240      // bytes of the path of a file
	maxDepth    = 16       // directories, one in the other
)

// An unpacker writes the files of a plugin below a directory, and nothing anywhere else.
type unpacker struct {
	into *os.Root
	seen map[string]string // the paths so far, by how they are where case doesn't matter
	left int64             // bytes
}

func newUnpacker(into *os.Root) *unpacker {
	return &unpacker{into: into, seen: make(map[string]string), left: sign.MaxBytes}
}

// add writes one file.
func (u *unpacker) add(name string, mode fs.FileMode, open func() (io.ReadCloser, error)) error {
	if err := checkPath(name); err != nil {
		return err
	}
	if !mode.IsRegular() {
		return fmt.Errorf("%q is a link or a device: a plugin has only files", name)
	}
	if len(u.seen) == sign.MaxFiles {
		return fmt.Errorf("it has more than %d files", sign.MaxFiles)
	}
	folded := strings.ToLower(name)
	if other, ok := u.seen[folded]; ok {
		return fmt.Errorf("%q and %q have the same name", other, name)
	}
	u.seen[folded] = name
	if dir := path.Dir(name); dir != "." {
		if err := u.into.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	from, err := open()
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	defer from.Close()
	perm := fs.FileMode(0o644)
	if mode&0o100 != 0 {
		perm = 0o755
	}
	to, err := u.into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(from, u.left+1))
	if u.left -= n; err == nil && u.left < 0 {
		err = fmt.Errorf("its files have more than %d MiB", sign.MaxBytes>>20)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}

// checkPath refuses what could lie outside of the plugin's directory, here or elsewhere, or can't be shown.
func checkPath(name string) error {
	switch {
	case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, `\:`):
		return fmt.Errorf("%q is outside of the plugin's directory, or no path", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%q has characters that no path should have", name)
	case len(name) > maxPath:
		return fmt.Errorf("%q: a path has at most %d bytes", cut(name, 60), maxPath)
	case strings.Count(name, "/") > maxDepth:
		return fmt.Errorf("%q: directories lie at most %d deep", cut(name, 60), maxDepth)
	}
	return nil
}

// leave reports whether a file is left behind: what Python compiled, and what version control keeps.
func leave(name string) bool {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if part == "__pycache__" || part == ".git" {
			return true
		}
	}
	return false
}

// unzip unpacks a zip file, in which the plugin is at the top, or alone in one directory.
func unzip(r *zip.Reader, into *os.Root) error {
	if len(r.File) > 2*sign.MaxFiles { // directories count as well
		return fmt.Errorf("it has more than %d files", sign.MaxFiles)
	}
	top := ""
	files := slices.DeleteFunc(slices.Clone(r.File), func(f *zip.File) bool { return strings.HasPrefix(f.Name, "__MACOSX/") }) // of a Mac's
	for i, f := range files {
		first, _, below := strings.Cut(f.Name, "/")
		if f.Name == manifestName || !below || i > 0 && first+"/" != top {
			top = ""
			break
		}
		top = first + "/"
	}
	u := newUnpacker(into)
	for _, f := range files {
		name := strings.TrimPrefix(f.Name, top)
		if dir, ok := strings.CutSuffix(name, "/"); ok || name == "" {
			if dir != "" && dir != "." {
				if err := checkPath(dir); err != nil {
					return err
				}
			}
			continue // those that have files are made
		}
		if f.Flags&1 != 0 {
			return fmt.Errorf("%q is encrypted: a plugin is not", name)
		}
		if err := checkPath(name); err != nil {
			return err
		}
		if leave(name) {
			continue
		}
		if err := u.add(name, f.Mode(), f.Open); err != nil {
			return err
		}
	}
	return nil
}

// copyFiles copies a directory.
func copyFiles(from fs.FS, into *os.Root) error {
	u := newUnpacker(into)
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "__pycache__" || d.Name() == ".git"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return u.add(name, info.Mode(), func() (io.ReadCloser, error) { return from.Open(name) })
	})
}
