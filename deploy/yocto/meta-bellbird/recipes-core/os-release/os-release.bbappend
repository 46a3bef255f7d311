# By this the appliance knows the version of the system, and an update whether it is newer.
IMAGE_VERSION:bellbird = "${BELLBIRD_VERSION}"
OS_RELEASE_FIELDS:append:bellbird = " IMAGE_VERSION"
