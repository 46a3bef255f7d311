package ota

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	stall      = 30 * time.Second // without a byte, after which a server is given up
	longest    = 12 * time.Hour   // of a download
	attempts   = 8                // of a download that breaks off, until it is left to a later time
	retryAfter = 5 * time.Second  // doubled each time
	reserve    = 64 << 20         // bytes that are left free on the data partition: what the chats may need
)

// Errors of a server. What has arrived of a bundle is kept, and a later download goes on from there.
var (
	ErrStalled = errors.New("the server has sent nothing for 30 seconds")
	ErrCutOff  = errors.New("the download broke off")
)

// Errors of a bundle that isn't what the manifest says.
var (
	ErrSize = errors.New("the bundle doesn't have the size that the manifest says")
	ErrHash = errors.New("the bundle isn't the one that the manifest means: its SHA-256 is another")
)

// get asks for an address, from byte from on. The body must be closed; reading it fails if the server stalls.
func (u *Updater) get(ctx context.Context, address string, from int64) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(stall, func() { cancel(ErrStalled) })
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "bellbird/"+u.o.Version)
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	client := http.Client{Transport: u.o.Transport}
	resp, err := client.Do(req)
	if err != nil {
		watch.Stop()
		err = cause(ctx, err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &watched{resp.Body, ctx, cancel, watch}
	return resp, nil
}

// cause is err, or what ctx was cancelled for if that is why.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// A watched body fails when nothing comes.
type watched struct {
	io.ReadCloser
	ctx    context.Context // of the request; it lives as long as its body
	cancel context.CancelCauseFunc
	watch  *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.watch.Reset(stall)
	}
	if err != nil && err != io.EOF {
		err = cause(w.ctx, err)
	}
	return n, err
}

func (w *watched) Close() error {
	w.watch.Stop()
	w.cancel(nil)
	return w.ReadCloser.Close()
}

// offer fetches the manifest.
func (u *Updater) offer(ctx context.Context) (*Release, error) {
	fail := func(err error) (*Release, error) { return nil, fmt.Errorf("update manifest %s: %w", u.o.URL, err) }
	base, err := url.Parse(u.o.URL)
	if err != nil {
		return fail(err)
	}
	if err := u.secure(base); err != nil {
		return fail(err)
	}
	resp, err := u.get(ctx, u.o.URL, 0)
	if err != nil {
		return fail(plain(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fail(fmt.Errorf("the server answers %s", resp.Status))
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
	if err != nil {
		return fail(err)
	}
	r, err := ParseManifest(text, u.key, base)
	if err != nil {
		return fail(err)
	}
	return r, nil
}

// plain is an error of a client without the address, which is said already.
func plain(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// ErrClock is returned as long as the time of day isn't known, because no certificate can be checked without it.
var ErrClock = errors.New("the clock isn't set yet, and without the time no certificate can be checked: is there a network?")

func (u *Updater) secure(address *url.URL) error {
	if address.Scheme == "https" && !u.o.ClockKnown() {
		return ErrClock
	}
	return nil
}

// download gets a release's bundle into the data partition, and returns its path. What is there of it already is not
// fetched again. progress is told the bytes that there are.
func (u *Updater) download(ctx context.Context, r *Release, progress func(done int64)) (string, error) {
	whole, part := filepath.Join(u.o.Dir, bundleFile), filepath.Join(u.o.Dir, bundlePart)
	if sum, size, err := hashFile(whole); err == nil && size == r.Size && sum == r.SHA256 {
		return whole, nil
	}
	if address, err := url.Parse(r.URL); err != nil {
		return "", err
	} else if err := u.secure(address); err != nil {
		return "", err
	}
	if err := u.room(r.Size, part); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("%w: it took more than %v", ErrCutOff, longest))
	defer cancel()
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return "", u.storage(err)
	}
	defer f.Close()
	d := &download{u: u, r: r, f: f, hash: sha256.New(), progress: progress}
	if err := d.begin(); err != nil {
		return "", u.storage(err)
	}
	for wait := retryAfter; ; wait *= 2 {
		err := d.fetch(ctx)
		if err == nil {
			break
		}
		d.failures++
		passing := errors.Is(err, ErrStalled) || errors.Is(err, ErrCutOff)
		if ctx.Err() != nil || !passing || d.failures == attempts {
			if errors.Is(err, ErrSize) || errors.Is(err, ErrHash) {
				f.Close()
				os.Remove(part)
			}
			return "", err
		}
		u.o.Logger.Warn("a download goes on after a pause", "err", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	if err := f.Sync(); err != nil {
		return "", u.storage(err)
	}
	if err := os.Rename(part, whole); err != nil {
		return "", u.storage(err)
	}
	return whole, u.storageOrNil(syncDir(u.o.Dir))
}

func (u *Updater) storageOrNil(err error) error {
	if err == nil {
		return nil
	}
	return u.storage(err)
}

// room tells whether a bundle has room on the data partition, part of which may be there.
func (u *Updater) room(size int64, part string) error {
	if info, err := os.Stat(part); err == nil {
		size -= info.Size()
	}
	free, err := u.o.Free()
	if err != nil {
		return u.storage(err)
	}
	if size = max(size, 0); free < size+reserve {
		const mib = 1 << 20
		return fmt.Errorf("%w: %d MiB are free, the update needs %d and %d must be left", ErrNoSpace, free/mib, size/mib+1, reserve/mib)
	}
	return nil
}

// freeOn is how many bytes may be written to the file system of a directory.
func freeOn(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

func hashFile(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// A download is a bundle that is on its way.
type download struct {
	u        *Updater
	r        *Release
	f        *os.File
	hash     hash.Hash // of the bytes that are there
	have     int64
	resumed  bool // some of them are of an earlier attempt, which a power cut may have spoiled
	failures int
	progress func(int64)
}

// begin looks at what is there of it.
func (d *download) begin() error {
	info, err := d.f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > d.r.Size {
		return d.restart()
	}
	d.have, err = io.Copy(d.hash, d.f)
	d.resumed = d.have > 0
	return err
}

func (d *download) restart() error {
	d.hash.Reset()
	d.have, d.resumed = 0, false
	if err := d.f.Truncate(0); err != nil {
		return err
	}
	_, err := d.f.Seek(0, io.SeekStart)
	return err
}

// fetch gets the rest and checks the whole.
func (d *download) fetch(ctx context.Context) error {
	for d.have < d.r.Size {
		if err := d.more(ctx); err != nil {
			return err
		}
	}
	if hex.EncodeToString(d.hash.Sum(nil)) == d.r.SHA256 {
		return nil
	}
	if d.resumed {
		if err := d.restart(); err != nil {
			return d.u.storage(err)
		}
		return d.fetch(ctx)
	}
	return fmt.Errorf("%s: %w", d.r.URL, ErrHash)
}

// more gets the rest, or a part of it.
func (d *download) more(ctx context.Context) error {
	resp, err := d.u.get(ctx, d.r.URL, d.have)
	if err != nil {
		return d.broke(ctx, plain(err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusPartialContent && d.have > 0 &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", d.have)):
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && d.have > 0:
		if d.have > 0 { // it doesn't do parts
			if err := d.restart(); err != nil {
				return d.u.storage(err)
			}
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %w: %w (the server has less of it than it had)", d.r.URL, ErrCutOff, ErrSize)
		}
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests:
		return d.broke(ctx, fmt.Errorf("the server answers %s", resp.Status))
	default:
		return fmt.Errorf("%s: the server answers %s", d.r.URL, resp.Status)
	}
	rest := d.r.Size - d.have
	if n := resp.ContentLength; n >= 0 && n != rest {
		return fmt.Errorf("%s: %w: the server has %d bytes, and it is %d", d.r.URL, ErrSize, n+d.have, d.r.Size)
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buf)
		if int64(n) > d.r.Size-d.have {
			return fmt.Errorf("%s: %w: the server sends more than %d bytes", d.r.URL, ErrSize, d.r.Size)
		}
		if n > 0 {
			if _, err := d.f.Write(buf[:n]); err != nil {
				return d.u.storage(err)
			}
			d.hash.Write(buf[:n])
			d.have += int64(n)
			d.progress(d.have)
		}
		switch {
		case err == io.EOF && d.have == d.r.Size:
			return nil
		case err == io.EOF:
			return d.broke(ctx, io.ErrUnexpectedEOF)
		case err != nil:
			return d.broke(ctx, err)
		}
	}
}

// broke is the error of a download of which the rest may come later.
func (d *download) broke(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrStalled):
		return fmt.Errorf("%s: after %d of %d bytes: %w", d.r.URL, d.have, d.r.Size, err)
	case errors.Is(err, fs.ErrPermission):
		return err
	}
	return fmt.Errorf("%s: %w after %d of %d bytes: %v", d.r.URL, ErrCutOff, d.have, d.r.Size, err)
}
