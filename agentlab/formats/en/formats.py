"""How the admin writes a time: as every other page does, to the second and with its zone."""

DATETIME_FORMAT = "j M Y H:i:s e"
