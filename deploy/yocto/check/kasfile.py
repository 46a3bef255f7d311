"""Checks the kas file by the schema that kas has.

usage: kasfile.py FILE
"""

import sys

import jsonschema
import yaml
from kas import __file_version__, __compatible_file_version__
from kas.configschema import CONFIGSCHEMA

with open(sys.argv[1]) as f:
    config = yaml.safe_load(f)
jsonschema.validate(config, CONFIGSCHEMA)
if not __compatible_file_version__ <= config['header']['version'] <= __file_version__:
    sys.exit('kas: this is version %s of the format' % config['header']['version'])
for name, repo in config['repos'].items():
    if 'url' in repo and 'branch' not in repo and 'commit' not in repo:
        sys.exit('kas: %s has neither branch nor commit' % name)
print('kas: %d repositories, no complaints' % len(config['repos']))
