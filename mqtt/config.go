package mqtt

import (
	"maps"
	"strings"
)

// component is an entity as the discovery contract has it. Its keys are the short ones.
func (d *Device) component(e entity) fields {
	c := fields{"p": e.platform, "~": d.base, "qos": 1}
	maps.Copy(c, e.fields)
	if e.platform == "device_automation" {
		return c
	}
	c["uniq_id"] = d.id + "_" + e.key
	c["def_ent_id"] = e.platform + "." + d.id + "_" + strings.ReplaceAll(e.key, "-", "_")
	c["name"] = e.name
	if e.category != "" {
		c["ent_cat"] = e.category
	}
	if e.disabled {
		c["en"] = false
	}
	if e.state != nil || e.platform == "event" {
		c["stat_t"] = "~/" + e.key
	}
	if e.attributes != nil {
		c["json_attr_t"] = "~/" + e.key + "/attributes"
	}
	if e.command != nil {
		c["cmd_t"] = "~/" + e.key + "/set"
	}
	return c
}

// config is the device as it is announced, with these components. There must be nothing else at its root: Home Assistant
// refuses a device for any key that it doesn't know there.
func (d *Device) config(components map[string]any) fields {
	device := fields{"ids": []string{d.id}, "name": d.o.Name, "mf": "Bellbird"}
	origin := fields{"name": "bellbird"}
	for key, value := range map[string]string{"mdl": d.o.Model, "sw": d.o.Version} {
		if value != "" {
			device[key] = value
		}
	}
	if d.o.Version != "" {
		origin["sw"] = d.o.Version
	}
	// These payloads are the usual ones, but Home Assistant has been seen to miss its own defaults for them.
	available := fields{"t": d.availability(), "pl_avail": "online", "pl_not_avail": "offline"}
	return fields{"dev": device, "o": origin, "avty": []fields{available}, "cmps": components}
}
