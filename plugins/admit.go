package plugins

// admit asks whose a plugin is, and whether it may be loaded.
func (l *Loader) admit(p *plugin) (err error) {
	if l.o.Admit != nil {
		p.Origin, err = l.o.Admit(p.Info)
	}
	return err
}
