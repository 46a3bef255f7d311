package plugins

import "slices"

// Where a plugin is present. Its manifest says it, and its user may say otherwise: that lies in its state, under a key
// which its scripts can't write.

// knownSurfaces are those on which a chat can be shown.
var knownSurfaces = []string{"chat", "game"}

// onlyKnown are the surfaces of a list that there are. It is never nil.
func onlyKnown(list []string) []string {
	known := []string{}
	for _, s := range list {
		if slices.Contains(knownSurfaces, s) {
			known = append(known, s)
		}
	}
	return known
}

// effectiveSurfaces are those of a plugin whose manifest has declared: nil, everywhere, if it doesn't restrict itself,
// whatever its user said.
func effectiveSurfaces(declared []string, s State) []string {
	if declared == nil {
		return nil
	}
	chosen, ok := s.Get(surfacesKey, nil).([]any)
	if !ok {
		return declared
	}
	list := make([]string, 0, len(chosen))
	for _, v := range chosen {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return onlyKnown(list)
}

// surfacesSetting is the user's choice as a setting.
func surfacesSetting(declared []string) Setting {
	return Setting{Key: surfacesKey, Type: "list", Label: "Show on", Help: "Of chat and game.", Default: texts(declared)}
}

func texts(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

// setSurfaces changes the user's choice, now and from now on; nil is that of the manifest.
func (l *Loader) setSurfaces(p *plugin, choice any) error {
	var err error
	if choice == nil {
		err = p.state.Delete(surfacesKey)
	} else {
		err = p.state.Save(surfacesKey, choice)
	}
	if err == nil && p.Loaded {
		l.o.Runner.SetSurfaces(p.Manifest.Name, effectiveSurfaces(p.Manifest.Surfaces, p.state))
	}
	return err
}
