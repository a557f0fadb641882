"""Settings of Kafka for a process on another machine, which has none of the files that they name:
what stands in the files travels with them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

from leasehold.model.errors import ConfigurationError
from leasehold.settings.environment import KafkaSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedKafkaSettings(KafkaSettings):
    """Settings with the texts of their PEM files. They hold a private key: never print them."""

    ca_text: str | None = field(default=None, repr=False)
    certificate_text: str | None = field(default=None, repr=False)
    key_text: str | None = field(default=None, repr=False)

    def librdkafka(self) -> dict[str, str | int | float | bool]:
        """Return the options as those of `KafkaSettings`, with texts for names of files."""
        options = KafkaSettings.librdkafka(self)
        for name, text in (
            ("ssl.ca", self.ca_text),
            ("ssl.certificate", self.certificate_text),
            ("ssl.key", self.key_text),
        ):
            if options.pop(f"{name}.location", None) is not None and text is not None:
                options[f"{name}.pem"] = text
        return options

    def spark_options(self) -> dict[str, str]:
        """Return the options as those of `KafkaSettings`, with texts for names of files."""
        # What would be read for them is replaced: it may not be on this machine.
        bare = KafkaSettings(
            **{each.name: getattr(self, each.name) for each in fields(KafkaSettings)}
            | {"ca": None, "certificate": None, "key": None}
        )
        options = bare.spark_options()
        if self.uses_tls:
            if self.ca_text is not None:
                options["kafka.ssl.truststore.type"] = "PEM"
                options["kafka.ssl.truststore.certificates"] = self.ca_text
            if self.certificate_text is not None and self.key_text is not None:
                options["kafka.ssl.keystore.type"] = "PEM"
                options["kafka.ssl.keystore.certificate.chain"] = self.certificate_text
                options["kafka.ssl.keystore.key"] = self.key_text
        return options


def carry(kafka: KafkaSettings) -> CarriedKafkaSettings:
    """Return the settings with what their files hold now. Raises ConfigurationError where one can't
    be read."""
    return CarriedKafkaSettings(
        **{each.name: getattr(kafka, each.name) for each in fields(KafkaSettings)},
        ca_text=_text("LEASEHOLD_KAFKA_CA", kafka.ca),
        certificate_text=_text("LEASEHOLD_KAFKA_CERTIFICATE", kafka.certificate),
        key_text=_text("LEASEHOLD_KAFKA_KEY", kafka.key),
    )


def _text(variable: str, path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{variable} names {str(path)!r}, which can't be read: {error}.", variable=variable
        ) from None
