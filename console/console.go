// Package console is the page with which people watch and steer the appliance in a browser. It serves files that are
// embedded, and nothing of the appliance: what there is to see, and what can be changed, the page asks the API for, and
// with the API's token if it wants one.
package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"bellbird/hooks"
)

//go:embed web
var web embed.FS

// policy lets the page use only what is served here, and no script or style that isn't a file; text can't become markup
// (Trusted Types), wherever it comes from.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// kinds are the types of the files. The system's own table may have others.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
}

// A page is one file as it is served.
type page struct {
	text []byte
	kind string
	etag string
}

// Handler serves the pages, and budgets.json, which says how many milliseconds the handlers of each hook point have
// together; that of a point which isn't there is named "". They have no secrets, and need no token.
func Handler() http.Handler {
	pages := make(map[string]page)
	add := func(name string, text []byte) {
		kind := kinds[path.Ext(name)]
		if kind == "" {
			kind = mime.TypeByExtension(path.Ext(name))
		}
		sum := sha256.Sum256(text)
		pages["/"+name] = page{text, kind, `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	err := fs.WalkDir(web, "web", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := web.ReadFile(name)
		add(strings.TrimPrefix(name, "web/"), text)
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("console: what is embedded can't be read: %v", err)) // the compiler put it there
	}
	add("budgets.json", budgets())
	pages["/"] = pages["/index.html"]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "a page can only be read", http.StatusMethodNotAllowed)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Type", p.kind)
		// Asked again each time, and sent again only when an update has changed it.
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", p.etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p.text))
	})
}

func budgets() []byte {
	ms := make(map[string]int64)
	for _, p := range hooks.Points() {
		ms[p.Name] = p.Budget.Milliseconds()
	}
	plugins, _ := hooks.PointNamed("") // one of a plugin's own
	ms[""] = plugins.Budget.Milliseconds()
	text, err := json.Marshal(ms)
	if err != nil {
		panic(err) // there are only numbers in it
	}
	return text
}
