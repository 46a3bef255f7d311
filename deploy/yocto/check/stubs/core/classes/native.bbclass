CLASSOVERRIDE = "class-native"
