package worker

// The sandbox of a worker, which is the only thing between a hostile script that has found a way out of its interpreter
// and the device. Its parts overlap on purpose: a kernel that lacks one still has the others.

// A Part is a part of the sandbox.
type Part struct {
	Name    string `json:"name"`
	Missing string `json:"missing,omitempty"` // why it is not in force; "": it is
}

// String is for a log: the name, and what is wrong.
func (p Part) String() string {
	if p.Missing == "" {
		return p.Name
	}
	return "no " + p.Name + " (" + p.Missing + ")"
}

// The names of the parts.
const (
	partPriority    = "low priority"       // the sound comes first, and the worker is the first to go when memory is short
	partParent      = "end with parent"    // even if it spins
	partDescriptors = "closed descriptors" // all but the standard ones
	partPrivileges  = "no privileges"      // no capabilities, and no way to get any by running a program
	partFiles       = "file rules"         // Landlock: no files
	partTCP         = "TCP rules"          // Landlock: no TCP
	partScope       = "scope rules"        // Landlock: no signals and no abstract sockets to others
	partLimits      = "resource limits"    // few descriptors, no core files, no writing to files
	partDump        = "no dumps"           // others of the same user can't look into it
	partCalls       = "call filter"        // only the system calls that an interpreter needs
)

func part(name string, err error) Part {
	if err != nil {
		return Part{name, err.Error()}
	}
	return Part{Name: name}
}
