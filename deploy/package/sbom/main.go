// Command sbom lists what a Bellbird binary is made of, as a software bill of materials in CycloneDX's JSON: the Go modules
// that the binary itself names, the C libraries that are linked into it, and the wake word models beside it. It can also
// collect the licences of the modules. It looks at nothing else, finds no vulnerabilities, and downloads nothing.
//
// The same input gives the same output: there is no serial number, and the time is that of SOURCE_DATE_EPOCH.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	version := flags.String("version", "unknown", "version of the package")
	models := flags.String("models", "", "directory of the models that are installed with the binary")
	libraries := flags.String("libraries", "", "C libraries that are linked into it: name=version,...")
	out := flags.String("o", "", "the file to write")
	licences := flags.String("licences", "", "the file for the modules' licences")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *out == "" {
		return errors.New("usage: sbom [flags] -o FILE BINARY")
	}
	info, err := buildinfo.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	bom, err := describe(info, flags.Arg(0), *version, *models, *libraries)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(bom, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(*out, append(text, '\n'), 0o644); err != nil {
		return err
	}
	if *licences == "" {
		return nil
	}
	text, err = collect(info.Deps)
	if err != nil {
		return err
	}
	return os.WriteFile(*licences, text, 0o644)
}

// The part of CycloneDX 1.6 that is needed.
type (
	document struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp,omitempty"`
		Component component `json:"component"`
	}
	component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref"`
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
		PURL    string `json:"purl,omitempty"`
		Hashes  []hash `json:"hashes,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

func describe(info *debug.BuildInfo, binary, version, models, libraries string) (*document, error) {
	sum, err := hashOf(binary)
	if err != nil {
		return nil, err
	}
	d := &document{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{Component: component{Type: "firmware", Ref: "bellbird", Name: "bellbird", Version: version, Hashes: []hash{sum}}},
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		d.Metadata.Timestamp = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	}
	add := func(kind, name, version, purl string, hashes ...hash) {
		ref := purl
		if ref == "" {
			ref = name
		}
		d.Components = append(d.Components, component{kind, ref, name, version, purl, hashes})
	}
	goVersion := strings.TrimPrefix(strings.Fields(info.GoVersion)[0], "go")
	add("library", "std", goVersion, "pkg:golang/std@"+goVersion)
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add("library", m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	for pair := range strings.SplitSeq(libraries, ",") {
		if pair == "" {
			continue
		}
		name, version, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("-libraries: %q: it should be name=version", pair)
		}
		add("library", name, version, "pkg:deb/debian/"+name+"@"+strings.ReplaceAll(version, "+", "%2B"))
	}
	if models != "" {
		files, err := filepath.Glob(filepath.Join(models, "*.tflite"))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			sum, err := hashOf(f)
			if err != nil {
				return nil, err
			}
			add("machine-learning-model", filepath.Base(f), "", "", sum)
		}
	}
	all := dependency{Ref: "bellbird"}
	for _, c := range d.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	d.Dependencies = []dependency{all}
	return d, nil
}

func hashOf(path string) (hash, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return hash{}, err
	}
	sum := sha256.Sum256(data)
	return hash{"SHA-256", hex.EncodeToString(sum[:])}, nil
}

// collect joins the licences of modules, which lie in the module cache. A module without one is an error: it may not be
// passed on.
func collect(modules []*debug.Module) ([]byte, error) {
	var b bytes.Buffer
	for _, m := range modules {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", m.Path).Output()
		dir := strings.TrimSpace(string(out))
		if err != nil || dir == "" {
			return nil, fmt.Errorf("%s: it is not in the module cache: run \"go mod download\" (%v)", m.Path, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !isLicence(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "==== %s %s: %s\n\n%s\n\n", m.Path, m.Version, e.Name(), bytes.TrimSpace(text))
			found = true
		}
		if !found {
			return nil, fmt.Errorf("%s: it has no licence", m.Path)
		}
	}
	return b.Bytes(), nil
}

func isLicence(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS", "UNLICENSE"}, func(p string) bool { return strings.HasPrefix(name, p) })
}
