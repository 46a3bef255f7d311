package wake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bellbird/wake/tflite"
)

// A Model is a network and what is known about it: microWakeWord's with what its manifest says, or openWakeWord's, which
// has none. It doesn't change, and any number of detectors may use it.
type Model struct {
	Name      string        // by which it is found: the file name without ".json" or ".tflite"
	Word      string        // as it is spoken: "Okay Nabu"; "" if nobody says
	Languages []string      // it was trained on
	Cutoff    float64       // the mean probability above which the word was said
	Window    int           // how many probabilities the mean is of
	Step      time.Duration // from one slice of features, or embedding, to the next

	net  *tflite.Model
	dirs []string // of openWakeWord's: where the models are that make embeddings
}

// IsOpenWakeWord tells whether NewOpenWakeWord is for this model, and not NewDetector.
func (m *Model) IsOpenWakeWord() bool { return m.net.IsFloat() }

// A manifest is the JSON file beside a model, in both versions.
type manifest struct {
	Type      string   `json:"type"`
	Word      string   `json:"wake_word"`
	Model     string   `json:"model"`
	Languages []string `json:"trained_languages"`
	Version   int      `json:"version"`
	Micro     struct {
		Cutoff   float64 `json:"probability_cutoff"`
		Window   int     `json:"sliding_window_size"`
		WindowV1 int     `json:"sliding_window_average_size"`
		Step     int     `json:"feature_step_size"` // in milliseconds
	} `json:"micro"`
}

// maxManifest is far more than any manifest has.
const maxManifest = 64 << 10

// LoadModel reads the manifest and the model that it names.
func LoadModel(manifestPath string) (*Model, error) {
	m, err := readManifest(manifestPath)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(manifestPath)
	if m.Model == "" || m.Model != filepath.Base(m.Model) {
		return nil, fmt.Errorf("manifest %q: \"model\" is %q, not the name of a file beside it", base, m.Model)
	}
	net, err := tflite.Load(filepath.Join(filepath.Dir(manifestPath), m.Model))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("model file %q named by %s is missing: put it into %s", m.Model, base, filepath.Dir(manifestPath))
	} else if err != nil {
		return nil, err
	}
	model := &Model{
		Name:      strings.TrimSuffix(base, ".json"),
		Word:      m.Word,
		Languages: m.Languages,
		Cutoff:    m.Micro.Cutoff,
		Window:    m.Micro.Window,
		Step:      time.Duration(m.Micro.Step) * time.Millisecond,
		net:       net,
	}
	if _, err := NewDetector(model, 0); err != nil {
		return nil, err
	}
	return model, nil
}

func readManifest(path string) (m manifest, err error) {
	base := filepath.Base(path)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("manifest %q is missing in %s", base, filepath.Dir(path))
	} else if err != nil {
		return m, err
	}
	if len(data) > maxManifest {
		return m, fmt.Errorf("manifest %q: %d bytes are more than the limit of %d", base, len(data), maxManifest)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("manifest %q: %w", base, err)
	}
	switch {
	case m.Type != "micro":
		return m, fmt.Errorf("manifest %q: \"type\" is %q, not \"micro\"", base, m.Type)
	case m.Version == 1:
		// The first version left open what everybody knew then.
		m.Micro.Window = m.Micro.WindowV1
		if m.Micro.Step == 0 {
			m.Micro.Step = 20
		}
	case m.Version != 2:
		return m, fmt.Errorf("manifest %q: version %d, not 1 or 2", base, m.Version)
	}
	switch {
	case m.Micro.Step != 10 && m.Micro.Step != 20:
		return m, fmt.Errorf("manifest %q: \"feature_step_size\" is %d, not 10 or 20", base, m.Micro.Step)
	case m.Micro.Window < 1 || m.Micro.Window > 100:
		return m, fmt.Errorf("manifest %q: \"sliding_window_size\" is %d, not 1 to 100", base, m.Micro.Window)
	case !(m.Micro.Cutoff > 0 && m.Micro.Cutoff < 1):
		return m, fmt.Errorf("manifest %q: \"probability_cutoff\" is %v, not between 0 and 1", base, m.Micro.Cutoff)
	}
	return m, nil
}

// FindModel loads the model of that name from the first of the directories that has it: microWakeWord's by its manifest,
// "name.json", or openWakeWord's, which is "name.tflite" alone. A *NotFound tells that none has.
func FindModel(name string, dirs []string) (*Model, error) {
	if name == "" || name != filepath.Base(name) {
		return nil, fmt.Errorf("%q is no name of a wake word", name)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name+".json")
		if _, err := os.Stat(path); err == nil {
			return LoadModel(path)
		}
		if _, err := os.Stat(filepath.Join(dir, name+tfliteExt)); err == nil {
			return loadOpenModel(dir, name, dirs)
		}
	}
	return nil, &NotFound{Name: name, Dirs: dirs, There: ModelNames(dirs)}
}

// NotFound tells that no directory has the model. Whoever can do without the model asks for it.
type NotFound struct {
	Name  string
	Dirs  []string
	There []string // the models there are
}

func (e *NotFound) Error() string {
	there := "there are none"
	if len(e.There) > 0 {
		there = "there are " + strings.Join(e.There, ", ")
	}
	dirs := "no directory"
	if len(e.Dirs) > 0 {
		dirs = strings.Join(e.Dirs, ", ")
	}
	return fmt.Sprintf("wake word model %q: not found in %s (%s); in a source checkout, run \"make models\"", e.Name, dirs, there)
}

// ModelNames lists the names of the models in the directories, sorted.
func ModelNames(dirs []string) []string {
	var names []string
	for _, dir := range dirs {
		paths, _ := filepath.Glob(filepath.Join(dir, "*.json")) // only a bad pattern is an error
		for _, path := range paths {
			if _, err := readManifest(path); err == nil {
				names = append(names, strings.TrimSuffix(filepath.Base(path), ".json"))
			}
		}
		names = append(names, OpenWakeWordNames(dir)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
